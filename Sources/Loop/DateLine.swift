// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// The line that HTTP answers carry the time in, made once a second and not once an answer.

/// `Date: Sun, 06 Nov 1994 08:49:37 GMT` with its CRLF (RFC 9110 5.6.7), for seconds since 1970.
package func dateLine(at second: Int) -> [UInt8] {
  let days = second / 86400
  let rest = second % 86400
  let (year, month, day) = civil(days)
  let names = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"]
  let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
  func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
  let time = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
  return Array("Date: \(names[days % 7]), \(two(day)) \(months[month - 1]) \(year) \(time) GMT\r\n".utf8)
}

/// The date of a day counted from 1970-01-01, not negative. Years are counted from March, so that a leap day is a year's last; then
/// months of 31, 30, 31, 30, 31 days repeat, and (5m + 2) / 153 finds the month.
private func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
  let shifted = days + 719_468  // days from 0000-03-01
  let era = shifted / 146_097  // 400 years
  let dayOfEra = shifted % 146_097
  let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
  let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  let shiftedMonth = (5 * dayOfYear + 2) / 153
  let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
  return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
}
