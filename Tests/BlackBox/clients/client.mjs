// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// One request by Node's http module with its default agent, told as one line of JSON.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http from "node:http";
import { parseArgs } from "node:util";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    body: { type: "string" }, chunked: { type: "boolean" }, expect: { type: "boolean" },
    host: { type: "string" }, unix: { type: "string" },
  },
});
const [method, url] = positionals;
const body = values.body ? readFileSync(values.body) : undefined;
const headers = { "Content-Type": "application/x-test" };
if (values.host) headers.Host = values.host;
if (values.expect) headers.Expect = "100-continue";
if (body && !values.chunked) headers["Content-Length"] = body.length;

let continued = false;
let answered = false;
const request = http.request(url, { method, headers, socketPath: values.unix }, (response) => {
  answered = true;
  const pieces = [];
  response.on("data", (piece) => pieces.push(piece));
  response.on("error", fail);
  response.on("aborted", () => fail(new Error("the answer was cut")));
  response.on("end", () => {
    const data = Buffer.concat(pieces);
    console.log(JSON.stringify({
      status: response.statusCode, headers: response.headers, length: data.length,
      sha256: createHash("sha256").update(data).digest("hex"),
      text: data.length <= 4096 ? data.toString("utf8") : "", continued,
    }));
  });
});
request.on("error", (error) => { if (!answered) fail(error); });
if (values.expect) {
  request.on("continue", () => { continued = true; request.end(body); });
  request.flushHeaders();
} else if (values.chunked && body) {
  request.write(body.subarray(0, 1));
  request.end(body.subarray(1));
} else {
  request.end(body);
}

function fail(error) {
  console.error(error.message);
  process.exit(1);
}
