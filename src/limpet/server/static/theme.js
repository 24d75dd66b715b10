// Sets the theme before the page is drawn: the chosen one, or that of the system.
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const choose = () => {
    const chosen = localStorage.getItem("limpet-theme");
    document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
    document.dispatchEvent(new Event("themechange"));
  };
  system.addEventListener("change", choose);
  document.addEventListener("themechosen", choose);
  choose();
}
