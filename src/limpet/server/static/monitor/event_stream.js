// Server-sent events that reconnect automatically, also after errors for which the browser does not.

import { api } from "../common/api.js";

/**
 * Subscribe to `url()`; `handlers` are by event name and receive the data. `onState` receives "live" or "lost".
 * The browser resumes after the last event it received; a new connection calls `url()` again, which has the position to resume from.
 */
export function connectEvents(url, handlers, onState = () => {}) {
  let source = null;
  let timer = null;
  let retryDelayMs = 1000;
  let closed = false;

  function open() {
    source = new EventSource(url());
    source.onopen = () => {
      retryDelayMs = 1000;
      onState("live");
    };
    source.onerror = () => {
      if (closed) return;
      onState("lost");
      if (source.readyState === EventSource.CLOSED) reconnect();
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), event));
    }
  }

  function reconnect() {
    timer = setTimeout(async () => {
      retryDelayMs = Math.min(retryDelayMs * 2, 15000);
      // The browser does not report the reason. A call of the API does, and shows the login dialog if a token is required.
      await api("/streams?limit=1").catch(() => {});
      if (!closed) open();
    }, retryDelayMs);
  }

  open();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      source.close();
    },
  };
}
