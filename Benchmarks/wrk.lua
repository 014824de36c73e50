-- SPDX-FileCopyrightText: The Door authors
-- SPDX-License-Identifier: MIT
--
-- Makes wrk end with one line of JSON, times in microseconds. Runs after the load, so it costs the load nothing.
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '{"answers":%d,"seconds":%.3f,"failed":%d,"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d,"p50":%.1f,"p99":%.1f,"p999":%.1f}\n',
    summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    e.connect, e.read, e.write, e.status, e.timeout, latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
