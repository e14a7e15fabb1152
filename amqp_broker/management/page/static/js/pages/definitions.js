import { getDocument, post } from "../api.js";
import { h, put, toast } from "../dom.js";
import { form } from "../form.js";
import { number, path } from "../format.js";
import { part } from "../list.js";
import { state } from "../state.js";

const KINDS = ["vhosts", "users", "permissions", "topic_permissions", "policies", "parameters", "global_parameters", "exchanges", "queues", "bindings"];

const address = (vhost) => (vhost === "" ? "/api/definitions" : `/api/definitions/${path(vhost)}`);
const choice = () => ({ name: "vhost", label: "From", type: "select", options: [["", "The whole broker"], ...state.vhosts.map((name) => [name, `Virtual host ${name}`])], value: state.vhost });

/** Return the numbers of objects in definitions, by kind. */
function counts(definitions) {
  const found = KINDS.map((kind) => [kind.replace(/_/g, " "), definitions[kind]?.length ?? 0]).filter(([, count]) => count);
  return h("dl", { class: "counts" }, found.length ? found.map(([kind, count]) => h("div", null, h("dt", null, kind), h("dd", null, number(count)))) : h("p", { class: "note" }, "The file has no definitions."));
}

export function page() {
  const exported = h("div");
  const exporting = form({
    action: "Export",
    note: "Virtual hosts, users, permissions, policies, exchanges, queues and bindings in one JSON file, without messages.",
    fields: [choice(), { name: "file", label: "File name", value: `definitions_${new Date().toISOString().slice(0, 10)}.json` }],
    submit: async ({ vhost, file }) => {
      const { value: definitions, content } = await getDocument(address(vhost));
      const url = URL.createObjectURL(new Blob([content], { type: "application/json" }));
      const anchor = h("a", { href: url, download: file }, file);
      anchor.click();
      put(exported, h("p", null, "Saved as ", anchor, ":"), counts(definitions));
    },
  });

  const preview = h("div");
  let definitions = null;
  const importing = form({
    action: "Import",
    note: "Adds the objects in the file. Existing objects are kept, and none are removed.",
    fields: [{ ...choice(), label: "Into" }, { name: "file", label: "File", type: "file", required: true, onchange: (event) => read(event.target.files[0]) }],
    submit: async ({ vhost }) => {
      if (!definitions) throw new Error("The file is not a JSON object");
      await post(address(vhost), definitions);
      toast("The definitions were imported");
      await state.loadVhosts();
      dispatchEvent(new Event("vhostschange"));
    },
  });

  async function read(file) {
    definitions = null;
    if (!file) return put(preview);
    try {
      const content = await file.text();
      const value = JSON.parse(content);
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error();
      definitions = new Blob([content]);
      return put(preview, h("p", null, `${file.name} contains:`), counts(value));
    } catch {
      return put(preview, h("p", { class: "problem" }, `${file.name} is not a JSON object`));
    }
  }

  const element = h(
    "section",
    null,
    h("div", { class: "title" }, h("h1", null, "Definitions")),
    h("div", { class: "columns" }, part("Export definitions", exporting, exported), part("Import definitions", importing, preview)),
  );
  return { title: "Definitions", element };
}
