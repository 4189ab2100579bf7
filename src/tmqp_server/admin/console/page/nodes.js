// The nodes of the cluster.

import { get } from "./api.js";
import { age, badge, card, fill, h, table, title } from "./dom.js";

export async function page() {
  const place = h("div", {});
  const refresh = async () => {
    const { items } = await get("nodes");
    if (items.some((row) => row.role)) {
      fill(place, card(null, table("Group", [
        ["Node", (row) => row.id],
        ["Role", (row) => badge(row.role, row.role === "leader" ? "good" : "")],
        ["State", (row) => (row.connected ? badge("there", "good") : badge("silent", "error"))],
        ["Epoch", (row) => row.epoch, "n"], ["Applied", (row) => row.applied, "n"],
        ["Behind", (row) => row.behind, "n"], ["Address", (row) => row.host],
      ], items, "")));
      return;
    }
    fill(place, card(null, table("Nodes", [
      ["Node", (row) => row.name || row.id], ["Id", (row) => row.id], ["Host", (row) => row.host],
      ["State", (row) => (row.connected ? badge("connected", "good") : badge("away", "error"))],
      ["For", (row) => (row.connected ? age(row.lifetime_ms / 1000) : ""), "n"],
      ["Connection", (row) => (row.slave ? "it connected here" : "from here")],
    ], items, "This server stands alone: it is connected to no other node.")));
  };
  await refresh();
  return { name: "Nodes", element: h("div", {}, title("Nodes"), place), refresh, every: 3000 };
}
