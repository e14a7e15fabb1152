// A list of messages; each expands to its payload and properties.

import { get } from "./api.js";
import { h, put, toast } from "./dom.js";
import { exchangeName, number, octets, path } from "./format.js";
import { isCut, payloadView, preview, propertiesView } from "./payload.js";

/**
 * Return a list of messages. `address` is the path of their queue, if whole bodies can be asked for; `chosen` has the
 * positions of chosen messages, and `edit(message)` opens a dialog, where these are given.
 */
export function messageList(messages, { address = null, state = "ready", chosen = null, onChosen = null, edit = null } = {}) {
  return h(
    "ol",
    { class: "messages" },
    messages.map((one, index) =>
      h(
        "li",
        { class: chosen ? "choosable" : null },
        chosen ? choice(one, chosen, onChosen) : null,
        h(
          "details",
          { ontoggle: (event) => open(event.target, one, { address, state, edit }) },
          h(
            "summary",
            null,
            h("span", { class: "at" }, number(one.offset ?? index)),
            h("span", { class: "from" }, h("b", null, one.routing_key === "" ? "(empty key)" : one.routing_key), h("small", null, exchangeName(one.exchange))),
            h("span", { class: "says" }, preview(one)),
            one.connection ? h("span", { class: "tag" }, `held by ${one.consumer_tag ?? "basic.get"}`) : null,
            one.redelivered ? h("span", { class: "tag", title: "Delivered before" }, "redelivered") : null,
            h("span", { class: "size" }, octets(one.payload_bytes)),
          ),
        ),
      ),
    ),
  );
}

function choice({ position, offset }, chosen, onChosen) {
  const onchange = (event) => {
    if (event.target.checked) chosen.add(position);
    else chosen.delete(position);
    onChosen();
  };
  return h("input", { type: "checkbox", checked: chosen.has(position), "aria-label": `Choose message ${number(offset)}`, onchange });
}

/** Build the details when a message is opened for the first time. */
function open(element, one, { address, state, edit }) {
  if (!element.open || element.querySelector(".message")) return;
  const holder = one.connection && h("p", null, "Delivered as ", h("b", null, number(one.delivery_tag)), " on ", h("a", { href: `#/channels/${path(`${one.connection} (${one.channel})`)}` }, `channel ${one.channel}`), " of ", h("a", { href: `#/connections/${path(one.connection)}` }, one.connection));
  const payload = h("div");
  const whole = async (then) => {
    try {
      then(isCut(one) ? await wholeOf(address, state, one) : one);
    } catch (error) {
      toast(error.message, "error");
    }
  };
  const button = (label, then) => h("button", { type: "button", class: "small", onclick: () => whole(then) }, label);
  const drawn = (message) => put(payload, payloadView(message), address && isCut(message) ? button("Show the whole payload", drawn) : null);
  drawn(one);
  element.append(h("div", { class: "message" }, holder, payload, h("div", null, propertiesView(one.properties), edit ? button("Edit and publish", edit) : null)));
}

/** Return a message with its whole payload. Throw Error if it is no longer at its place. */
async function wholeOf(address, state, one) {
  const query = new URLSearchParams({ count: 1, offset: one.offset, state });
  const [found] = (await get(`/_broker/queues/${address}/peek?${query}`)).messages;
  const isSame = found && ["position", "connection", "channel", "delivery_tag", "due_ms", "payload_bytes"].every((name) => found[name] === one[name]);
  if (!isSame) throw new Error("The message is not at its place any more: refresh the list.");
  return found;
}
