// Server-sent events that come back by themselves, also where the browser gives up: after a refusal or a login.

import { api } from "../common.js";

/**
 * Listens to `url()`; `handlers` are by event name and get the data. `state` hears "live" or "lost".
 * The browser goes on after the last event it had; a connection made anew asks `url()` again, which says where to go on.
 */
export function live(url, handlers, state = () => {}) {
  let source = null;
  let timer = null;
  let wait = 1000;
  let closed = false;

  function open() {
    source = new EventSource(url());
    source.onopen = () => {
      wait = 1000;
      state("live");
    };
    source.onerror = () => {
      if (closed) return;
      state("lost");
      if (source.readyState === EventSource.CLOSED) again();
    };
    for (const [name, handle] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => handle(JSON.parse(event.data), event));
    }
  }

  function again() {
    timer = setTimeout(async () => {
      wait = Math.min(wait * 2, 15000);
      // The browser does not say why it was refused. A plain call does, and asks for the token where that is why.
      await api("/streams?limit=1").catch(() => {});
      if (!closed) open();
    }, wait);
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
