// swift-tools-version: 6.2
// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import PackageDescription

// A package of its own that depends on Door as a user's would: figures taken inside Door would be of code specialised for its own modules.
let package = Package(
  name: "lookup",
  dependencies: [.package(name: "door", path: "../..")],
  targets: [
    .executableTarget(name: "Lookup", dependencies: [.product(name: "Routes", package: "door"), .product(name: "Wire", package: "door")])
  ]
)
