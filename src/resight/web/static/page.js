// Keys, drop and paste, filters that apply themselves, zoom. Everything works without this file.
(() => {
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const cards = () => all("#results .card");
  const current = () => document.activeElement.closest?.("#results .card");
  let answered; // the place of the last answer on this page, which U undoes

  // ---- keys on the results: arrows move, M same, N different, ? not sure, U undo
  function columnsOf(list) {
    const second = list.findIndex((card) => card.offsetTop !== list[0].offsetTop);
    return second < 0 ? list.length : second;
  }
  function move(step) {
    const list = cards();
    const here = list.indexOf(current());
    const next = here < 0 ? 0 : Math.min(list.length - 1, Math.max(0, here + step));
    list[next].querySelector(".pick").focus();
  }
  function answer(key) {
    const where = current() ?? document.querySelector(".decide") ?? cards().find((card) => card.querySelector(`[data-key="${key}"]`));
    const button = where?.querySelector(`[data-key="${key}"]`);
    if (!button) return;
    where.querySelector(".pick")?.focus();
    button.click();
  }
  function undo() {
    const place = current()?.querySelector(".undo") ? current() : document.getElementById(answered);
    (place ?? document).querySelector("button.undo")?.click();
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const list = cards();
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (list.length) Object.assign(steps, { ArrowDown: columnsOf(list), ArrowUp: -columnsOf(list) });
    const key = event.key.toLowerCase();
    if (list.length && event.key in steps) { event.preventDefault(); move(steps[event.key]); }
    else if (["m", "n", "?"].includes(key)) answer(key);
    else if (key === "u") undo();
  });

  // ---- forms: they lead back to the page as it stands; filters apply once when something changed
  let due, sent;
  document.addEventListener("submit", (event) => {
    clearTimeout(due);
    if (event.target.matches(".applies[hx-get]")) {
      const now = new URLSearchParams(new FormData(event.target)).toString();
      if (now === sent) { event.preventDefault(); event.stopImmediatePropagation(); return; }
      sent = now;
    }
    const back = event.target.querySelector("input.here");
    if (back) back.value = location.pathname + location.search;
  }, true);
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form?.matches(".applies")) due = setTimeout(() => form.requestSubmit(), 60);
    if (event.target.matches("#image") && event.target.files.length) form.requestSubmit();
    if (event.target.matches("[data-select]")) {
      all(event.target.dataset.select).forEach((box) => { box.checked = event.target.checked; });
    }
  });

  // ---- images that are dropped or pasted anywhere on a page that takes some
  function take(files) {
    const input = document.querySelector(".drop input[type=file]");
    if (!input || !files?.length) return;
    input.files = files;
    if (!input.matches("[data-waits]")) input.form.requestSubmit();
  }
  const carries = (event) => document.querySelector(".drop") && event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (carries(event)) { event.preventDefault(); document.body.classList.add("dragging"); }
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dragging");
  });
  document.addEventListener("drop", (event) => {
    document.body.classList.remove("dragging");
    if (carries(event)) { event.preventDefault(); take(event.dataTransfer.files); }
  });
  document.addEventListener("paste", (event) => take(event.clipboardData?.files));

  // ---- comparing: a click enlarges both pictures at the same place, which follows the pointer
  function look(event) {
    const frame = event.target.closest(".zoomable .frame");
    const both = frame?.closest(".compare");
    if (!both) return;
    const box = frame.getBoundingClientRect();
    const place = `${100 * (event.clientX - box.left) / box.width}% ${100 * (event.clientY - box.top) / box.height}%`;
    if (event.type === "click") { event.preventDefault(); both.classList.toggle("zoomed"); }
    all(".frame img", both).forEach((img) => {
      img.style.transformOrigin = place;
      img.style.transform = both.classList.contains("zoomed") ? "scale(3)" : "";
    });
  }
  document.addEventListener("click", look);
  document.addEventListener("pointermove", look);

  // ---- what the server cannot know: the browser's time zone
  function prepare() {
    all(".compare").forEach((both) => both.classList.add("zoomable"));
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    all("select[name=zone]").forEach((select) => {
      if (zone && ![...select.options].some((one) => one.value === zone)) select.add(new Option(zone, zone));
    });
  }
  document.addEventListener("htmx:load", prepare);
  prepare();

  // A button that was pressed is gone after its answer: keep the focus where it was.
  document.addEventListener("htmx:afterSwap", (event) => {
    const place = document.getElementById(event.detail.target.id);
    if (place?.matches(".verdict")) answered = place.id;
    if (document.activeElement === document.body) {
      (place?.closest(".card")?.querySelector(".pick") ?? place?.querySelector("button"))?.focus();
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
