import { remove, set } from "../api.js";
import { h } from "../dom.js";
import { confirm, dialog } from "../form.js";
import { path, plain } from "../format.js";
import { list as listPage } from "../list.js";
import { state } from "../state.js";
import { cell } from "../table.js";

const KEYS = [
  ["message-ttl", "number", "Milliseconds"],
  ["expires", "number", "Milliseconds"],
  ["max-length", "number", "Messages"],
  ["max-length-bytes", "number", "Octets"],
  ["overflow", "string", "drop-head, reject-publish or reject-publish-dlx"],
  ["dead-letter-exchange", "string", ""],
  ["dead-letter-routing-key", "string", ""],
  ["delivery-limit", "number", "Quorum queues"],
  ["max-age", "string", "Streams: 7D, 12h"],
  ["alternate-exchange", "string", "Exchanges"],
];
const APPLY = [
  ["all", "Exchanges and queues"],
  ["queues", "All queues"],
  ["classic_queues", "Classic queues"],
  ["quorum_queues", "Quorum queues"],
  ["streams", "Streams"],
  ["exchanges", "Exchanges"],
];
const KINDS = [
  ["policies", "Policies", "policy"],
  ["operator-policies", "Operator policies", "operator policy"],
];

export function list() {
  const pages = KINDS.map(([address, title, word]) => one(address, title, word));
  return {
    title: "Policies",
    element: h("div", { class: "stack" }, pages.map((page) => page.element)),
    refresh: () => Promise.all(pages.map((page) => page.refresh())),
    leave: () => pages.forEach((page) => page.leave()),
  };
}

function one(address, title, word) {
  const mayChange = state.is(word === "policy" ? "policymaker" : "administrator");
  const at = (policy) => `/api/${address}/${path(policy.vhost, policy.name)}`;
  return listPage({
    title,
    path: () => state.listPath(address),
    kinds: ["policy", "operator_policy", "parameter", "vhost"],
    isPaged: false,
    sort: "name",
    key: (policy) => `${policy.vhost} ${policy.name}`,
    columns: [
      { title: "Virtual host", sort: "vhost", value: (policy) => policy.vhost },
      {
        title: "Name",
        sort: "name",
        value: (policy) => (mayChange ? cell(policy, () => h("button", { type: "button", class: "link name", onclick: () => edit(policy) }, policy.name)) : policy.name),
      },
      { title: "Pattern", value: (policy) => cell(`p${policy.pattern}`, () => h("code", null, policy.pattern)) },
      { title: "Applies to", value: (policy) => policy["apply-to"] },
      { title: "Definition", wide: true, value: (policy) => cell(policy.definition, () => h("code", null, plain(policy.definition))) },
      { title: "Priority", sort: "priority", numeric: true, value: (policy) => policy.priority },
      {
        title: "",
        numeric: true,
        value: (policy) => (mayChange ? cell(`${policy.vhost} ${policy.name}`, () => h("button", { type: "button", class: "quiet small", onclick: () => clear(policy) }, "Clear")) : ""),
      },
    ],
    actions: [mayChange && h("button", { type: "button", class: "primary", "data-key": "n", onclick: () => edit(null), title: word === "policy" ? "n" : null }, `Add ${word}`)],
    empty: h("div", null, h("b", null, `No ${title.toLowerCase()}.`), h("p", null, word === "policy" ? "A policy sets arguments of all queues or exchanges with matching names." : "An operator policy sets limits that users of a virtual host cannot exceed.")),
  });

  function clear(policy) {
    confirm({ title: `Clear ${word} ${policy.name}?`, note: "The policy stops applying immediately.", action: "Clear", submit: () => remove(at(policy)), done: `${policy.name} was cleared` });
  }

  function edit(policy) {
    dialog({
      title: policy ? `Change ${word} ${policy.name}` : `Add ${word === "policy" ? "a" : "an"} ${word}`,
      action: policy ? "Change" : `Add ${word}`,
      fields: [
        policy ? null : state.vhostField(state.is("administrator") ? state.vhosts : state.openVhosts),
        policy ? null : { name: "name", label: "Name", required: true },
        { name: "pattern", label: "Pattern", required: true, value: policy?.pattern ?? "", help: "A regular expression for names" },
        { name: "apply-to", label: "Apply to", type: "select", options: word === "policy" ? APPLY : APPLY.slice(1, 5), value: policy?.["apply-to"] },
        { name: "priority", label: "Priority", type: "number", value: policy?.priority ?? 0 },
        { name: "definition", label: "Definition", type: "pairs", hints: KEYS, value: policy?.definition, isWide: true },
      ],
      submit: ({ vhost = policy?.vhost, name = policy?.name, ...rest }) => set(at({ vhost, name }), { ...rest, priority: rest.priority ?? 0 }),
      done: ({ name = policy?.name }) => `${name} now applies`,
    });
  }
}
