// The points of one stream as its charts show them: one column a quantity, rows strictly ascending, nothing twice.
// Knows nothing of the page or of the network, so that it can be tested alone.

const FLAT = ["counts", "times", "score", "p_value", "n_rejected", "anomaly", "change"];
const NESTED = ["low", "high", "estimate"];

const APART = 64; // rows between two estimates that still make a line

const least = (a, b) => (a === null ? b : b === null ? a : Math.min(a, b));
const most = (a, b) => (a === null ? b : b === null ? a : Math.max(a, b));
const later = (a, b) => b ?? a;
const sum = (a, b) => a + b;
const first = (a) => a;

/** How two neighbours become one: what was lowest, highest, last or most in either. */
const MERGE = {
  rows: first,
  counts: sum,
  times: first,
  score: most,
  p_value: least,
  n_rejected: sum,
  anomaly: most,
  change: most,
  low: least,
  high: most,
  estimate: later,
};

export class Buffer {
  /** `span` is how many rows are kept (the last ones), `most` how many places they may take before neighbours are merged. */
  constructor(nVariables, { span = Infinity, most = 4000 } = {}) {
    this.nVariables = nVariables;
    this.span = span;
    this.most = most;
    this.clear();
  }

  clear() {
    this.rows = [];
    for (const name of FLAT) this[name] = [];
    for (const name of NESTED) this[name] = Array.from({ length: this.nVariables }, () => []);
    this.next = 0; // the row that comes next
  }

  get length() {
    return this.rows.length;
  }

  /** Begins anew with an answer of /history. */
  load(history) {
    this.clear();
    this.rows = history.rows.slice();
    for (const name of FLAT) this[name] = history[name].slice();
    for (const name of NESTED)
      this[name] = this[name].map((column, j) => (history[name]?.[j] ?? history.rows.map(() => null)).slice());
    if (this.length) this.next = this.rows[this.length - 1] + this.counts[this.length - 1];
    else this.next = history.first_row ?? 0;
    this.shorten();
  }

  /**
   * Adds points (the shape of /points). Rows that are here already are left out. At a row that does not follow it stops and
   * returns the row it misses, so that it can be asked for; `lenient` takes what comes after a hole that nobody can fill.
   */
  append(points, { lenient = false } = {}) {
    for (let i = 0; i < points.rows.length; i++) {
      const row = points.rows[i];
      if (row < this.next) continue;
      if (row > this.next && this.length && !lenient) return this.settle(this.next);
      this.push(points, i);
      this.next = row + 1;
    }
    return this.settle(null);
  }

  push(points, i) {
    this.rows.push(points.rows[i]);
    this.counts.push(1);
    this.times.push(points.times[i] ?? null);
    this.n_rejected.push(points.rejected[i]);
    for (const name of ["score", "p_value", "anomaly", "change"]) this[name].push(points[name][i] ?? null);
    for (let j = 0; j < this.nVariables; j++) {
      const value = points.values[j]?.[i] ?? null;
      this.low[j].push(value);
      this.high[j].push(value);
      this.estimate[j].push(points.estimate?.[j]?.[i] ?? null);
    }
  }

  settle(missing) {
    this.shorten();
    while (this.length > this.most) this.halve();
    return missing;
  }

  /** Lets go of rows that are older than the span. */
  shorten() {
    let gone = 0;
    while (gone < this.length && this.rows[gone] + this.counts[gone] <= this.next - this.span) gone++;
    if (gone) for (const column of this.columns()) column.splice(0, gone);
  }

  /** Merges each place with its neighbour: all rows stay in view in half the places. */
  halve() {
    for (const name of ["rows", ...FLAT]) this[name] = pairs(this[name], MERGE[name]);
    for (const name of NESTED) this[name] = this[name].map((column) => pairs(column, MERGE[name]));
  }

  /** The most points that one place of these rows stands for. */
  widest(first = -Infinity, last = Infinity) {
    let most = 0;
    for (let i = 0; i < this.length; i++)
      if (this.rows[i] <= last && this.rows[i] + this.counts[i] > first) most = Math.max(most, this.counts[i]);
    return most;
  }

  /** A copy in which neighbours are merged to `size` points or more: a picture in which all places are alike. */
  even(size) {
    const copy = new Buffer(this.nVariables, { span: this.span, most: this.most });
    const [starts, ends] = [[], []];
    let n = size;
    this.counts.forEach((count, i) => {
      if (n >= size) starts.push(i);
      n = n >= size ? count : n + count;
    });
    starts.forEach((_, k) => ends.push(starts[k + 1] ?? this.length));
    const join = (column, merge) => starts.map((from, k) => column.slice(from, ends[k]).reduce((a, b) => merge(a, b)));
    for (const name of ["rows", ...FLAT]) copy[name] = join(this[name], MERGE[name]);
    for (const name of NESTED) copy[name] = this[name].map((column) => join(column, MERGE[name]));
    copy.next = this.next;
    return copy;
  }

  columns() {
    return [this.rows, ...FLAT.map((name) => this[name]), ...NESTED.flatMap((name) => this[name])];
  }

  /** The place that holds a row, or the nearest before it; -1 where there is none. */
  at(row) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] <= row) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The estimate of a variable as steps: the server tells it at changes and every few rows, between them it holds. */
  line(j) {
    const [column, { rows }] = [this.estimate[j].slice(), this];
    let last = -1;
    for (let i = 0; i < column.length; i++) {
      if (column[i] === null) continue;
      const apart = last < 0 ? Infinity : rows[i] - rows[last];
      if (apart <= APART * Math.max(1, this.counts[i])) {
        column.fill(column[last], last, i);
      }
      last = i;
    }
    if (last >= 0 && this.next - rows[last] <= APART) column.fill(column[last], last); // it holds until the next is told
    return column;
  }

  /** What was rejected of a variable: the value farther from the estimate where a place holds several, else null. */
  rejected(j, line = this.line(j)) {
    return this.rows.map((_, i) => {
      if (!this.n_rejected[i]) return null;
      const [low, high, centre] = [this.low[j][i], this.high[j][i], line[i]];
      if (low === null || centre === null) return high;
      return centre - low > high - centre ? low : high;
    });
  }
}

function pairs(column, merge) {
  const half = [];
  for (let i = 0; i < column.length; i += 2)
    half.push(i + 1 < column.length ? merge(column[i], column[i + 1]) : column[i]);
  return half;
}
