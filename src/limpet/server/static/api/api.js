// The page of the API: Swagger UI with the OpenAPI document of this server.

import { api } from "../common/api.js";
import { createHeader, h, isDark, showError } from "../common/dom.js";

const BUNDLE = "/static/vendor/swagger-ui/swagger-ui-bundle.js.gz";

/** Load a script that defines a global. */
const loadScript = (src) =>
  new Promise((resolve, reject) =>
    document.head.append(h("script", { src, onload: resolve, onerror: () => reject(new Error(`${src} is missing`)) })),
  );

/** Swagger UI has its own class for the dark theme. */
const applyTheme = () => document.documentElement.classList.toggle("dark-mode", isDark());

async function start() {
  createHeader("api");
  applyTheme();
  document.addEventListener("themechange", applyTheme);
  const [spec] = await Promise.all([api("/openapi.json"), loadScript(BUNDLE)]);
  window.SwaggerUIBundle({ spec, dom_id: "#main", deepLinking: true, validatorUrl: null, docExpansion: "list" });
}

start().catch(showError);
