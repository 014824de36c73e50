// swift-tools-version: 6.2
// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import PackageDescription

// A package of its own: what crosses its border with Door is compiled as in a user's program, where nothing is specialised that Door
// does not offer for it.
let package = Package(
  name: "instructions",
  dependencies: [.package(name: "door", path: "../..")],
  targets: [
    .executableTarget(
      name: "instructions",
      dependencies: [
        .product(name: "Loop", package: "door"), .product(name: "Routes", package: "door"), .product(name: "Wire", package: "door"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
