// swift-tools-version: 6.2
// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import PackageDescription

// A package of its own, which depends on Door as a user's would. Outside this repository, `.package(url:from:)` takes the path's place.
let package = Package(
  name: "examples",
  dependencies: [.package(name: "door", path: "..")],
  targets: [
    .executableTarget(
      name: "door",
      dependencies: [
        .product(name: "Loop", package: "door"), .product(name: "Routes", package: "door"), .product(name: "Wire", package: "door"),
      ])
  ],
  swiftLanguageModes: [.v6]
)
