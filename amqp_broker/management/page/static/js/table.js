// Tables whose cells change in place. A row is identified by its key; unchanged cells are not touched.

import { h, put, text, unseen } from "./dom.js";
import { Fitting } from "./fitting.js";

/** A cell with elements, rebuilt only when `shown` changes. */
export const cell = (shown, build) => ({ shown: typeof shown === "string" ? shown : JSON.stringify(shown), build });
export const link = (label, href) => cell(`${label}\n${href}`, () => h("a", { href, class: "name", title: whole(label) }, label));
// A long text is cut: the whole shows when the pointer is above it.
const LONG = 30;
const whole = (label) => (String(label).length > LONG ? String(label) : null);
export const tag = (label, kind = "") => h("span", { class: `tag ${kind}` }, label);
export const tags = (...labels) => {
  const given = labels.filter(Boolean);
  return cell(given, () => given.map(([label, title, kind]) => h("span", { class: `tag ${kind ?? ""}`, title: title || whole(label) }, label)));
};

// columns: [{ title, value(row) → text or cell, numeric, sort (a field of the API), help, wide, minor, isKept, isHead }].
// Long texts of a wide column are broken, those of others are cut. Where there is no room, minor columns are left out
// first, and those that are kept last. The head is the column that names a row. The key of a row is a text; empty is the
// element to show if there are no rows.
export class Table {
  constructor({ columns, key, onSort, empty, label }) {
    this.columns = columns;
    this.key = key;
    this.rows = new Map();
    this.heads = columns.map((column) => {
      const content =
        onSort && column.sort ? h("button", { type: "button", class: "sort", onclick: () => onSort(column) }, column.title) : column.title || unseen("Action");
      return h("th", { scope: "col", class: kinds(column), title: column.help }, content);
    });
    this.body = h("tbody", { onkeydown: (event) => this.onKey(event) });
    this.table = h("table", { "aria-label": label }, h("thead", null, h("tr", null, this.heads)), this.body);
    this.empty = h("div", { class: "empty", hidden: true }, empty ?? "Empty.");
    this.element = h("div", { class: "table", role: "group", "aria-label": label }, this.table, this.empty);
    this.fitting = new Fitting(this.element, this.table, columns);
  }

  /** Mark the column that the rows are sorted by. */
  sorted(field, isReversed) {
    this.columns.forEach((column, index) => {
      const by = column.sort && column.sort === field;
      if (by) this.heads[index].setAttribute("aria-sort", isReversed ? "descending" : "ascending");
      else this.heads[index].removeAttribute("aria-sort");
    });
  }

  update(items) {
    const seen = new Set();
    let before = null;
    for (const item of items) {
      const key = this.key(item);
      if (seen.has(key)) continue;
      seen.add(key);
      let row = this.rows.get(key);
      if (!row) this.rows.set(key, (row = this.add()));
      this.columns.forEach((column, index) => change(row.cells[index], column.value(item)));
      const next = before ? before.nextSibling : this.body.firstChild;
      if (next !== row) this.body.insertBefore(row, next);
      before = row;
    }
    for (const [key, row] of this.rows) {
      if (seen.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    this.empty.hidden = seen.size > 0;
    this.table.hidden = seen.size === 0;
    const keys = [...seen].join("\n");
    if (keys === this.keys) this.fitting.squeeze();
    else this.fitting.fit();
    this.keys = keys;
  }

  add() {
    return h("tr", null, this.columns.map((column) => h("td", { class: kinds(column), role: column.isHead ? "rowheader" : null })));
  }

  /** Up and down move the focus to the first link or button of the next row. */
  onKey(event) {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    let row = event.target.closest("tr");
    do row = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
    while (row && !row.querySelector("a, button"));
    if (!row) return;
    row.querySelector("a, button").focus();
    event.preventDefault();
  }
}

const kinds = (column) => [column.numeric && "numeric", column.wide && "wide", column.minor && "minor"].filter(Boolean).join(" ") || null;

function change(place, value) {
  if (value !== null && typeof value === "object") {
    if (place.shown === value.shown) return;
    place.shown = value.shown;
    put(place, value.build());
  } else {
    place.shown = null;
    const shown = value === null || value === undefined ? "" : String(value);
    text(place, shown);
    if (whole(shown)) place.title = shown;
    else place.removeAttribute("title");
  }
}

/** A list of names and values, changed in place. */
export class Facts {
  constructor() {
    this.element = h("dl", { class: "facts" });
    this.values = new Map();
  }

  update(facts) {
    const names = facts.map(([name]) => name).join("\n");
    if (this.names !== names) {
      this.names = names;
      this.values = new Map(facts.map(([name]) => [name, h("dd")]));
      put(this.element, [...this.values].map(([name, place]) => h("div", null, h("dt", null, name), place)));
    }
    for (const [name, value] of facts) change(this.values.get(name), value);
  }
}
