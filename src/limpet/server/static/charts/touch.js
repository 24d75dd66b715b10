// Two fingers on a chart zoom it; one finger scrolls the page as ever. Used by chart.js only.

/** over: the element of the plot. range(): the rows in view. zoom([first, last]) is called as the fingers move. */
export function pinch(over, range, zoom) {
  let start = null;
  const places = (touches) => {
    const { left, width } = over.getBoundingClientRect();
    return [...touches].map((touch) => (touch.clientX - left) / width).sort((a, b) => a - b);
  };
  over.addEventListener(
    "touchstart",
    (event) => {
      if (event.touches.length !== 2) return (start = null);
      const [low, high] = range();
      start = { rows: places(event.touches).map((share) => low + share * (high - low)) };
      event.preventDefault();
    },
    { passive: false },
  );
  over.addEventListener(
    "touchmove",
    (event) => {
      if (!start || event.touches.length !== 2) return;
      event.preventDefault();
      const [a, b] = places(event.touches);
      // The rows that were under the fingers stay under them.
      const perShare = (start.rows[1] - start.rows[0]) / Math.max(b - a, 0.05);
      const low = start.rows[0] - a * perShare;
      zoom([low, low + perShare]);
    },
    { passive: false },
  );
  over.addEventListener("touchend", () => (start = null));
}
