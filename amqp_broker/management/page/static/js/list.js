// A list of the API as a page: title, filter, table, pages. The broker pages, sorts and filters long lists.

import { get } from "./api.js";
import { announce, h, put, text } from "./dom.js";
import { number } from "./format.js";
import { follow } from "./live.js";
import { NearRows } from "./near_rows.js";
import { searchField } from "./search.js";
import { Table } from "./table.js";
import { ALL, View } from "./view.js";

// The settings of a list are kept while the page is open.
const SETTINGS = new Map();

// { title, path() → address, columns, key, kinds (of events), sort, isPaged, actions (elements), empty,
//   before() (asks for more at each load), prepare(items, now) }
export function list({ title, path, columns, key, kinds, sort, isPaged = true, actions = [], empty, before = null, prepare, about = null }) {
  if (!SETTINGS.has(title)) SETTINGS.set(title, { page: 1, name: "", isRegex: false, sort, isReversed: false });
  const set = SETTINGS.get(title);
  const table = new Table({ columns, key, empty, label: title, onSort: sortBy });
  const view = new View(title, columns);
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const count = h("span", { class: "count" });
  const pager = h("div", { class: "pager" });
  const filter = searchField({ placeholder: "Filter", "aria-label": `Filter ${title}`, value: set.name, title: "/", apply });
  // A filter that is kept from before is easy to overlook.
  const unfilter = h("button", { type: "button", class: "small", onclick: () => ((filter.value = ""), filter.focus(), apply(false)) }, "Clear filter");
  const regex = h("input", { type: "checkbox", checked: set.isRegex, onchange: () => ((set.isRegex = regex.checked), restart()) });
  const expression = h("label", { class: "check", title: "The filter is a regular expression" }, regex, ".*");
  let isAsked = false;
  // Enter opens the only row that the filter leaves.
  let isOpening = false;

  function apply(isEnter) {
    set.name = filter.value;
    isOpening = isEnter && set.name !== "";
    restart();
  }

  function restart() {
    set.page = 1;
    isAsked = true;
    following.run();
  }

  function sortBy(column) {
    set.isReversed = set.sort === column.sort ? !set.isReversed : Boolean(column.numeric);
    set.sort = column.sort;
    following.run();
  }

  function turn(page) {
    set.page = page;
    following.run();
    scrollTo(0, 0);
  }

  function page(number, size) {
    const query = new URLSearchParams({ page: number, page_size: size, name: set.name, use_regex: set.isRegex, pagination: true });
    if (set.sort) query.set("sort", set.sort);
    if (set.isReversed) query.set("sort_reverse", "true");
    return get(`${path()}?${query}`);
  }

  // If all rows are on one page.
  const near = new NearRows(page);

  table.onRange = (first, last) => {
    if (isPaged && view.size === ALL && near.move(first, last)) following.run();
  };

  async function load() {
    const { name } = set;
    try {
      if (isPaged && view.size === ALL) {
        show(name, await near.load(JSON.stringify([path(), set.name, set.isRegex, set.sort, set.isReversed]), prepare));
        return undefined;
      }
      await before?.();
      const asked = set.page;
      const answer = await (isPaged ? page(asked, view.size) : get(path()));
      // The user has turned the page meanwhile: its rows are asked for next.
      if (asked !== set.page) return undefined;
      const shown = Array.isArray(answer) ? cut(answer, { ...set, size: view.size || answer.length || 1 }, key) : answer;
      prepare?.(shown.items, performance.now());
      show(name, shown);
    } catch (error) {
      if (error.status === 400 && (set.page > 1 || near.first > 0)) {
        near.move(0, 1);
        return turn(1);
      }
      problem.hidden = false;
      text(problem, error.message);
    }
  }

  /** Show the rows that a filter leaves, unless another one was set meanwhile: its rows are asked for next. */
  function show(name, rows) {
    if (name !== set.name) return;
    update(rows);
    if (isOpening && rows.filtered_count === 1) table.body.querySelector("a")?.click();
    isOpening = false;
  }

  function update({ items, total_count: total, filtered_count: filtered, page_count: pages, page }) {
    problem.hidden = true;
    set.page = page;
    table.sorted(set.sort, set.isReversed);
    table.update(items, (page - 1) * view.size, filtered);
    text(count, filtered === total ? number(total) : `${number(filtered)} of ${number(total)}`);
    unfilter.hidden = set.name === "";
    count.classList.toggle("filtered", set.name !== "");
    // New numbers come each second; only the answer to a filter is said.
    if (isAsked) announce(`${title}: ${count.textContent}`);
    isAsked = false;
    const shown = `${page} ${pages}`;
    if (pager.signature !== shown) {
      pager.signature = shown;
      put(
        pager,
        pages > 1
          ? [
              h("button", { type: "button", disabled: page <= 1, "data-key": "previous", onclick: () => turn(page - 1) }, "Previous"),
              h("span", null, `Page ${page} of ${pages}`),
              h("button", { type: "button", disabled: page >= pages, "data-key": "next", onclick: () => turn(page + 1) }, "Next"),
            ]
          : [],
      );
    }
  }

  function choose() {
    table.hide(view.hidden);
    set.page = 1;
    following.run();
  }

  const following = follow(kinds, load);
  table.hide(view.hidden);
  const chooser = h("button", { type: "button", "aria-haspopup": "dialog", onclick: () => view.open(choose, table.withoutRoom()) }, "View");
  const element = h(
    "section",
    { class: "list" },
    h("div", { class: "title" }, h("h1", null, title), count, unfilter, h("div", { class: "actions" }, h("div", { class: "filter" }, filter, isPaged ? expression : null), chooser, actions)),
    about,
    problem,
    table.element,
    pager,
  );
  return { title, element, refresh: following.run, leave: following.leave };
}

/** Filter and sort a list that the API returns unpaged. */
function cut(rows, set, key) {
  let items = rows;
  if (set.name) {
    const wanted = set.name.toLowerCase();
    items = rows.filter((row) => key(row).toLowerCase().includes(wanted));
  }
  const field = (row) => set.sort.split(".").reduce((value, part) => value?.[part], row) ?? "";
  if (set.sort) {
    items = [...items].sort((one, other) => {
      const [a, b] = [field(one), field(other)];
      return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    });
    if (set.isReversed) items.reverse();
  }
  const pages = Math.max(1, Math.ceil(items.length / set.size));
  const page = Math.min(set.page, pages);
  return { items: items.slice((page - 1) * set.size, page * set.size), total_count: rows.length, filtered_count: items.length, page_count: pages, page };
}

// The status of an object that cannot be shown.
const GONE = 404;
const REFUSED = new Set([401, 403]);

/** The page of one object: `load()` fetches and shows it. Instead of one that cannot be shown, a sentence says why. */
export function detail({ title, kind, back, kinds, load, content, actions = [] }) {
  const problem = h("div", { class: "empty", hidden: true });
  const body = h("div", { class: "parts" }, content);
  const heading = h("h1", null, title);
  let isLoaded = false;
  const following = follow(kinds, async () => {
    try {
      await load();
      isLoaded = true;
      problem.hidden = true;
      element.classList.remove("refused");
    } catch (error) {
      const { status } = error;
      const isRefused = REFUSED.has(status);
      problem.hidden = false;
      element.classList.toggle("refused", !isLoaded || status === GONE || isRefused);
      const sentence = status === GONE ? `${kind} “${title}” does not exist (any more).` : isRefused ? `You may not see ${kind.toLowerCase()} “${title}”: ${error.message}.` : error.message;
      put(problem, h("b", null, sentence), h("a", { href: back[1] }, back[0]));
    }
  });
  const element = h(
    "section",
    { class: "detail" },
    h("p", { class: "trail" }, h("a", { href: back[1] }, back[0]), " / "),
    h("div", { class: "title" }, heading, h("div", { class: "actions" }, actions)),
    problem,
    body,
  );
  // A name that the client has given is known only later.
  const rename = (name) => text(heading, name);
  return { title, element, rename, refresh: following.run, leave: following.leave };
}

/** A titled part of a page. */
export function part(title, ...content) {
  return h("section", { class: "part" }, h("h2", null, title), content);
}
