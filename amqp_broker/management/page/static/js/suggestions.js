// Names that a text field offers while the user types. The broker searches, so that thousands are no problem.

import { get } from "./api.js";
import { h, put, uniqueId } from "./dom.js";
import { path } from "./format.js";

const OFFERED = 20;

const namesOf = (kind, vhost) => async (typed) => {
  const query = new URLSearchParams({ page: 1, page_size: OFFERED, name: typed, columns: "name", disable_stats: "true" });
  const { items } = await get(`/api/${kind}/${path(vhost)}?${query}`);
  return items.map((one) => one.name).filter((name) => name !== "");
};

export const queuesOf = (vhost) => namesOf("queues", vhost);
export const exchangesOf = (vhost) => namesOf("exchanges", vhost);

/** Let a text field offer what `suggest(typed)` returns; return the list of its values. */
export function offered(control, suggest) {
  const list = h("datalist", { id: uniqueId("names") });
  let latest = 0;
  async function load() {
    const mine = ++latest;
    try {
      const values = await suggest(control.value);
      if (mine === latest) put(list, values.map((value) => h("option", { value })));
    } catch {
      // Names can be typed as well.
    }
  }
  control.setAttribute("list", list.id);
  control.addEventListener("focus", load);
  control.addEventListener("input", load);
  return list;
}
