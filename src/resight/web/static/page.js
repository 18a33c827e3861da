// Keys on the results: arrows move, M same, N different, U undo. Everything works without this file.
(() => {
  const cards = () => [...document.querySelectorAll("#results .card")];
  const current = () => document.activeElement.closest?.("#results .card");

  function columnsOf(all) {
    const top = all[0].offsetTop;
    const second = all.findIndex((card) => card.offsetTop !== top);
    return second < 0 ? all.length : second;
  }

  function move(step) {
    const all = cards();
    if (!all.length) return;
    const here = all.indexOf(current());
    const next = here < 0 ? 0 : Math.min(all.length - 1, Math.max(0, here + step));
    all[next].querySelector(".pick").focus();
  }

  function teach(key) {
    const card = current() ?? cards().find((one) => one.querySelector(`[data-key=${key}]`));
    const button = card?.querySelector(`[data-key=${key}]`);
    if (!button) return;
    card.querySelector(".pick").focus();
    button.click();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const all = cards();
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (all.length) Object.assign(steps, { ArrowDown: columnsOf(all), ArrowUp: -columnsOf(all) });
    const key = event.key.toLowerCase();
    if (all.length && event.key in steps) { event.preventDefault(); move(steps[event.key]); }
    else if (key === "m" || key === "n") teach(key);
    else if (key === "u") document.querySelector("#undo:not(:disabled)")?.click();
  });

  // Forms that lead back come back to the page as it stands, filters included.
  document.addEventListener("submit", (event) => {
    const back = event.target.querySelector("input.here");
    if (back) back.value = location.pathname + location.search;
  }, true);

  // A button that was pressed is gone after its answer: keep the focus on its card.
  document.addEventListener("htmx:afterSwap", (event) => {
    if (document.activeElement === document.body) {
      const card = document.getElementById(event.detail.target.id)?.closest(".card");
      card?.querySelector(".pick")?.focus();
    }
  });

  // The key of a link from the terminal stays in the browser and is sent as a form, once.
  function enter() {
    const login = document.getElementById("login");
    if (!login?.elements.key || !location.hash.startsWith("#key=")) return;
    login.elements.key.value = location.hash.slice(5);
    history.replaceState(null, "", location.pathname + location.search);
    if (!login.elements.purpose) login.submit();
  }
  enter();
  window.addEventListener("hashchange", enter);
})();
