// The points of one stream for its charts: a column per quantity, rows strictly ascending, without duplicates.
// Independent of the page and of the network.

const COLUMNS = ["counts", "times", "score", "p_value", "n_rejected", "anomaly", "change"];
const VARIABLE_COLUMNS = ["low", "high", "estimate"];

const MAX_LINE_GAP_ROWS = 64; // between two estimates that are connected

const minOrNull = (a, b) => (a === null ? b : b === null ? a : Math.min(a, b));
const maxOrNull = (a, b) => (a === null ? b : b === null ? a : Math.max(a, b));
const lastKnown = (a, b) => b ?? a;
const sum = (a, b) => a + b;
const keepFirst = (a) => a;

/** How two neighbouring buckets are merged. */
const MERGE = {
  rows: keepFirst,
  counts: sum,
  times: keepFirst,
  score: maxOrNull,
  p_value: minOrNull,
  n_rejected: sum,
  anomaly: maxOrNull,
  change: maxOrNull,
  low: minOrNull,
  high: maxOrNull,
  estimate: lastKnown,
};

export class PointBuffer {
  /** `span` is the number of latest rows to keep, `maxBuckets` the number of buckets beyond which neighbours are merged. */
  constructor(nVariables, { span = Infinity, maxBuckets = 4000 } = {}) {
    this.nVariables = nVariables;
    this.span = span;
    this.maxBuckets = maxBuckets;
    this.clear();
  }

  clear() {
    this.rows = [];
    for (const name of COLUMNS) this[name] = [];
    for (const name of VARIABLE_COLUMNS) this[name] = Array.from({ length: this.nVariables }, () => []);
    this.nextRow = 0;
  }

  get length() {
    return this.rows.length;
  }

  /** Replace all points by a response of /history. */
  load(history) {
    this.clear();
    this.rows = history.rows.slice();
    for (const name of COLUMNS) this[name] = history[name].slice();
    for (const name of VARIABLE_COLUMNS)
      this[name] = this[name].map((column, j) => (history[name]?.[j] ?? history.rows.map(() => null)).slice());
    if (this.length) this.nextRow = this.rows[this.length - 1] + this.counts[this.length - 1];
    else this.nextRow = history.first_row ?? 0;
    this.dropOldRows();
  }

  /**
   * Append points (a response of /points). Rows that exist are skipped. At a gap it stops and returns
   * the missing row, so that it can be fetched; `lenient` accepts gaps that cannot be filled.
   */
  append(points, { lenient = false } = {}) {
    for (let i = 0; i < points.rows.length; i++) {
      const row = points.rows[i];
      if (row < this.nextRow) continue;
      if (row > this.nextRow && this.length && !lenient) return this.trim(this.nextRow);
      this.push(points, i);
      this.nextRow = row + 1;
    }
    return this.trim(null);
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

  trim(gapRow) {
    this.dropOldRows();
    while (this.length > this.maxBuckets) this.mergePairs();
    return gapRow;
  }

  /** Remove rows that are older than the span. */
  dropOldRows() {
    let nDropped = 0;
    while (nDropped < this.length && this.rows[nDropped] + this.counts[nDropped] <= this.nextRow - this.span)
      nDropped++;
    if (nDropped) for (const column of this.columns()) column.splice(0, nDropped);
  }

  /** Merge pairs of neighbouring buckets. */
  mergePairs() {
    for (const name of ["rows", ...COLUMNS]) this[name] = mergeAdjacent(this[name], MERGE[name]);
    for (const name of VARIABLE_COLUMNS) this[name] = this[name].map((column) => mergeAdjacent(column, MERGE[name]));
  }

  /** The largest number of points in a bucket of these rows. */
  maxBucketSize(first = -Infinity, last = Infinity) {
    let size = 0;
    for (let i = 0; i < this.length; i++)
      if (this.rows[i] <= last && this.rows[i] + this.counts[i] > first) size = Math.max(size, this.counts[i]);
    return size;
  }

  /** A copy in which neighbours are merged into buckets of `size` points or more. */
  rebucket(size) {
    const copy = new PointBuffer(this.nVariables, { span: this.span, maxBuckets: this.maxBuckets });
    const [starts, ends] = [[], []];
    let n = size;
    this.counts.forEach((count, i) => {
      if (n >= size) starts.push(i);
      n = n >= size ? count : n + count;
    });
    starts.forEach((_, k) => ends.push(starts[k + 1] ?? this.length));
    const join = (column, merge) => starts.map((from, k) => column.slice(from, ends[k]).reduce((a, b) => merge(a, b)));
    for (const name of ["rows", ...COLUMNS]) copy[name] = join(this[name], MERGE[name]);
    for (const name of VARIABLE_COLUMNS) copy[name] = this[name].map((column) => join(column, MERGE[name]));
    copy.nextRow = this.nextRow;
    return copy;
  }

  columns() {
    return [this.rows, ...COLUMNS.map((name) => this[name]), ...VARIABLE_COLUMNS.flatMap((name) => this[name])];
  }

  /** The index of the bucket that holds a row, or of the last one before it; −1 without one. */
  indexOfRow(row) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle] <= row) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The estimate of a variable as steps: the server records it at changes and every few rows. */
  estimateLine(j) {
    const [column, { rows }] = [this.estimate[j].slice(), this];
    let last = -1;
    for (let i = 0; i < column.length; i++) {
      if (column[i] === null) continue;
      const gap = last < 0 ? Infinity : rows[i] - rows[last];
      if (gap <= MAX_LINE_GAP_ROWS * Math.max(1, this.counts[i])) {
        column.fill(column[last], last, i);
      }
      last = i;
    }
    if (last >= 0 && this.nextRow - rows[last] <= MAX_LINE_GAP_ROWS) column.fill(column[last], last); // valid until the next one is recorded
    return column;
  }

  /** The rejected values of a variable, null elsewhere; of a bucket, the value farther from the estimate. */
  rejectedValues(j, estimateLine = this.estimateLine(j)) {
    return this.rows.map((_, i) => {
      if (!this.n_rejected[i]) return null;
      const [low, high, center] = [this.low[j][i], this.high[j][i], estimateLine[i]];
      if (low === null || center === null) return high;
      return center - low > high - center ? low : high;
    });
  }
}

function mergeAdjacent(column, merge) {
  const half = [];
  for (let i = 0; i < column.length; i += 2)
    half.push(i + 1 < column.length ? merge(column[i], column[i + 1]) : column[i]);
  return half;
}
