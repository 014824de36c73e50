// swift-tools-version: 6.2
// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import PackageDescription

/// Held by every target: existentials are spelled out, imports stay internal unless they are part of the API.
let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "door",
  products: [
    .library(name: "Wire", targets: ["Wire"]),
    .library(name: "Loop", targets: ["Loop"]),
    .library(name: "Routes", targets: ["Routes"]),
    .executable(name: "doord", targets: ["doord"]),
  ],
  targets: [
    .systemLibrary(name: "CLibev", providers: [.apt(["libev-dev"])]),
    .systemLibrary(name: "CSystem"),
    .target(name: "Wire", swiftSettings: strict),
    .target(name: "Loop", dependencies: ["CLibev", "Wire"], swiftSettings: strict),
    .target(name: "Routes", dependencies: ["Wire"], swiftSettings: strict),
    .executableTarget(name: "doord", dependencies: ["CSystem", "Loop", "Routes", "Wire"], swiftSettings: strict),
    .testTarget(name: "WireTests", dependencies: ["Wire"], swiftSettings: strict),
    .testTarget(name: "LoopTests", dependencies: ["Loop", "Wire", "CLibev"], swiftSettings: strict),
    .testTarget(name: "RoutesTests", dependencies: ["Routes", "Wire"], swiftSettings: strict),
    .testTarget(name: "DoordTests", dependencies: ["doord", "Loop", "Routes", "Wire"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)

// It stands in for the kernel below Loop, for which Loop must have been compiled for testing: a plain release build is not.
if Context.environment["DOOR_SIMULATION"] != nil {
  package.targets.append(
    .executableTarget(name: "Simulation", dependencies: ["Loop", "Wire"], path: "Tests/Simulation", swiftSettings: strict))
}
