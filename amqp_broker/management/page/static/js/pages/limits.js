import { remove, set } from "../api.js";
import { h, toast } from "../dom.js";
import { dialog } from "../form.js";
import { BLANK, number, path } from "../format.js";
import { list as listPage } from "../list.js";
import { state } from "../state.js";
import { cell, link } from "../table.js";

const OF_VHOSTS = ["max-connections", "max-queues"];
const OF_USERS = ["max-connections", "max-channels"];

export function page() {
  const pages = [one("Virtual host limits", "vhost-limits", "vhost", OF_VHOSTS)];
  if (state.is("administrator")) pages.push(one("User limits", "user-limits", "user", OF_USERS));
  return {
    title: "Limits",
    element: h("div", { class: "stack" }, pages.map((each) => each.element)),
    refresh: () => Promise.all(pages.map((each) => each.refresh())),
    leave: () => pages.forEach((each) => each.leave()),
  };
}

function one(title, address, by, names) {
  const mayChange = state.is("administrator");
  const page = listPage({
    title,
    path: () => `/api/${address}`,
    kinds: ["vhost", "user", "parameter"],
    isPaged: false,
    sort: by,
    key: (row) => row[by],
    columns: [
      { title: by === "vhost" ? "Virtual host" : "User", sort: by, wide: true, value: (row) => link(row[by], `#/${by}s/${path(row[by])}`) },
      ...names.map((name) => ({ title: name, numeric: true, value: (row) => (name in row.value ? (row.value[name] < 0 ? "no limit" : number(row.value[name])) : BLANK) })),
      {
        title: "",
        numeric: true,
        value: (row) => (mayChange ? cell(row, () => h("button", { type: "button", class: "quiet small", onclick: () => clear(row) }, "Clear")) : ""),
      },
    ],
    actions: [mayChange && h("button", { type: "button", class: "primary", "data-key": by === "vhost" ? "n" : null, onclick: add }, by === "vhost" ? "Set limit of a virtual host" : "Set limit of a user")],
    empty: h("div", null, h("b", null, "No limits.")),
  });

  async function clear(row) {
    try {
      for (const name of Object.keys(row.value)) await remove(`/api/${address}/${path(row[by], name)}`);
      toast("Limits cleared");
    } catch (error) {
      toast(error.message, "error");
    }
    page.refresh();
  }

  function add() {
    dialog({
      title: by === "vhost" ? "Limit a virtual host" : "Limit a user",
      action: "Set limit",
      fields: [
        by === "vhost" ? { ...state.vhostField(), name: "target" } : { name: "target", label: "User", required: true },
        { name: "name", label: "Limit", type: "select", options: names },
        { name: "value", label: "Value", type: "number", required: true, help: "Negative: no limit" },
      ],
      submit: async ({ target, name, value }) => {
        await set(`/api/${address}/${path(target, name)}`, { value });
        page.refresh();
      },
      done: "The limit was set",
    });
  }

  return page;
}
