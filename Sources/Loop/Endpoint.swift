// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

public import Wire

// Where a server listens, as its user says it. Listening itself is ListeningSocket.

/// Where to listen.
public struct Endpoint: Sendable, Hashable, CustomStringConvertible {
  package enum Kind: Sendable, Hashable {
    /// 127.0.0.1 and ::1 on one port; a family the machine lacks is left out with a log line.
    case loopback(port: UInt16)
    /// Addresses on one port. A host is a numeric address, or a name whose every address is taken.
    case tcp(hosts: [String], port: UInt16)
    /// A path in the file system.
    case unix(path: String, mode: UInt16)
    /// A listening socket somebody else opened.
    case inherited(descriptor: Int32)
  }

  package var kind: Kind

  /// 127.0.0.1 and ::1, on one port for both. Port 0: one the system picks. A family this machine lacks is left out.
  public static func loopback(port: UInt16) -> Endpoint { Endpoint(kind: .loopback(port: port)) }

  /// An address and a port; port 0 is one the system picks. The host is an IPv4 or IPv6 address (`0.0.0.0`, `::`, `fe80::1%eth0`) or a
  /// name, which is looked up once, at start. IPv6 sockets take IPv6 only.
  public static func tcp(host: String, port: UInt16) -> Endpoint { tcp(hosts: [host], port: port) }

  /// The same with several hosts on one port: with port 0, one that is free on all of them.
  public static func tcp(hosts: [String], port: UInt16) -> Endpoint { Endpoint(kind: .tcp(hosts: hosts, port: port)) }

  /// A Unix-domain socket at `path`, at most 107 bytes, with the permissions `mode` (0o600: this user only). A file left by a server that is gone is
  /// replaced; a live one, and anything that is not a socket, is an error.
  public static func unix(_ path: String, mode: UInt16 = 0o600) -> Endpoint { Endpoint(kind: .unix(path: path, mode: mode)) }

  /// A listening socket that was opened by somebody else, systemd for example. The server owns it from `start` on.
  public static func inherited(descriptor: Int32) -> Endpoint { Endpoint(kind: .inherited(descriptor: descriptor)) }

  /// As a user would write it.
  public var description: String {
    switch kind {
    case .loopback(let port): "loopback:\(port)"
    case .tcp(let hosts, let port):
      hosts.map { $0.utf8.contains(UInt8(ascii: ":")) ? "[\($0)]:\(port)" : "\($0):\(port)" }.joined(separator: ", ")
    case .unix(let path, _): "unix:\(path)"
    case .inherited(let descriptor): "fd:\(descriptor)"
    }
  }
}

/// Where a server does listen, after `start`.
public enum BoundAddress: Sendable, Hashable, CustomStringConvertible {
  /// An address with its real port.
  case tcp(PeerAddress)
  /// A path.
  case unix(path: String)

  /// `127.0.0.1:8757`, `[::1]:8757`, `unix:/run/door.sock`.
  public var description: String {
    switch self {
    case .tcp(let address): address.description
    case .unix(let path): "unix:\(path)"
    }
  }

  /// The port; nil for a Unix-domain socket.
  public var port: UInt16? {
    switch self {
    case .tcp(let address): address.port
    case .unix: nil
    }
  }
}

/// Why a server cannot listen.
public enum ListenError: Error, Sendable, Hashable, CustomStringConvertible {
  /// Somebody listens there already.
  case addressInUse(String)
  /// The address is not this machine's, or its family is missing.
  case addressNotAvailable(String)
  /// The host is neither an address nor a name that can be looked up; the system's reason.
  case unknownHost(String, String)
  /// A Unix-domain socket's path is longer than 107 bytes or empty.
  case pathTooLong(String)
  /// What is at the path is not a socket; it was left alone.
  case notASocket(String)
  /// The inherited descriptor is not a listening stream socket.
  case notListening(Int32)
  /// Another error of the system: what was tried, where, `errno`.
  case system(call: String, address: String, errno: Int32)

  /// One sentence that says what to do.
  public var description: String {
    switch self {
    case .addressInUse(let address): "\(address) is in use: another program listens there; stop it or choose another address"
    case .addressNotAvailable(let address): "\(address) is not an address of this machine"
    case .unknownHost(let host, let reason): "\(host) is not an address and cannot be looked up: \(reason)"
    case .pathTooLong(let path): "a socket's path has 1 to 107 bytes, this one has \(path.utf8.count): \(path)"
    case .notASocket(let path): "\(path) exists and is not a socket; it was left alone"
    case .notListening(let descriptor): "descriptor \(descriptor) is not a listening stream socket"
    case .system(let call, let address, let code): "\(address): \(call): \(errorText(code))"
    }
  }
}
