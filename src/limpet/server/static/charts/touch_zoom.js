// Two fingers zoom a chart; one finger scrolls the page. Used by chart.js only.

/** over: the element of the plot. range(): the rows in view. zoom([first, last]) is called as the fingers move. */
export function enablePinchZoom(over, range, zoom) {
  let start = null;
  const positions = (touches) => {
    const { left, width } = over.getBoundingClientRect();
    return [...touches].map((touch) => (touch.clientX - left) / width).sort((a, b) => a - b);
  };
  over.addEventListener(
    "touchstart",
    (event) => {
      if (event.touches.length !== 2) return (start = null);
      const [low, high] = range();
      start = { rows: positions(event.touches).map((share) => low + share * (high - low)) };
      event.preventDefault();
    },
    { passive: false },
  );
  over.addEventListener(
    "touchmove",
    (event) => {
      if (!start || event.touches.length !== 2) return;
      event.preventDefault();
      const [a, b] = positions(event.touches);
      // The rows that were under the fingers stay under them.
      const perShare = (start.rows[1] - start.rows[0]) / Math.max(b - a, 0.05);
      const low = start.rows[0] - a * perShare;
      zoom([low, low + perShare]);
    },
    { passive: false },
  );
  over.addEventListener("touchend", () => (start = null));
}
