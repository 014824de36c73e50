// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

import FoundationEssentials
public import Wire

// JSON in and out with Codable, and the sentences for what does not decode.

extension HTTPAnswer {
  /// An object put together on the spot: `.json(["ok": true, "name": name])`. Its names are written in order, so the same object is the same bytes.
  /// A number that is not finite is null.
  public static func json(_ object: JSONObject, status: Int = 200) -> HTTPAnswer {
    var writer = JSONWriter()
    writer.append(object)
    return HTTPAnswer(status: status, contentType: "application/json", body: .bytes(writer.finish()))
  }

  /// A value as JSON, with sorted names and plain slashes.
  ///
  /// A value that cannot be encoded (a number that is not finite, an error of its own `encode(to:)`) becomes a 500 without details; the
  /// router tells the server's observer the error, as if the closure had thrown it.
  @_disfavoredOverload  // a literal is for the function above
  public static func json(_ value: some Encodable, status: Int = 200) -> HTTPAnswer {
    do {
      return HTTPAnswer(status: status, contentType: "application/json", body: .bytes(Bytes(try encoder.encode(value))))
    } catch {
      var answer = HTTPAnswer.refusal(.handlerFailed)
      answer.body = .stream(EncodingFailure(error: error))
      return answer
    }
  }

  /// One for all answers: it is Sendable, and making one costs more than using it.
  private static let encoder: JSONEncoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  /// The answer; throws the error of an encoding that failed, which it carries in place of a body.
  @inline(__always)
  consuming func checked() throws -> HTTPAnswer {
    if case .stream(let source) = body, let failure = source as? EncodingFailure { throw failure.error }
    return self
  }
}

/// What stands in an answer for a body that could not be encoded. The router takes it out; where an answer goes past the router's hands
/// (middleware that answers by itself), it reads as the 500's own body.
private final class EncodingFailure: OutputSource {
  let error: any Error

  init(error: any Error) { self.error = error }

  func next(into output: inout Output) -> OutputSourceState {
    if case .text(let text) = HTTPAnswer.refusal(.handlerFailed).body { output.append(text) }
    return .end
  }
  func cancel() {}
  func finish() {}
}

extension RouteRequest {
  /// The body, decoded from JSON. The content type is not looked at: what decodes is JSON.
  ///
  /// Throws a `Refusal` with 400 that names the field (`the field 'lamp.level' is missing`) and quotes nothing else of the body.
  public func json<Value: Decodable>(as type: Value.Type) throws -> Value {
    if body.isEmpty { throw Refusal.badRequest("the body is empty; JSON is expected") }
    let data = Data(body)
    do {
      return try JSONDecoder().decode(type, from: data)
    } catch let refusal as Refusal {
      throw refusal
    } catch DecodingError.dataCorrupted(let context) where context.codingPath.isEmpty {
      if let named = NumberFault.find(in: data, as: type) { throw Refusal.badRequest(named.sentence) }
      let isKnown = data.count <= NumberFault<Value>.limit
      throw Refusal.badRequest(isKnown ? "the body is not JSON" : "the body is not JSON, or a number in it does not fit")
    } catch let error as DecodingError {
      throw Refusal.badRequest(error.sentence)
    } catch {
      throw Refusal.badRequest("the body does not have the form that is expected here")
    }
  }
}

extension DecodingError {
  /// What to tell the client.
  fileprivate var sentence: String {
    switch self {
    case .keyNotFound(let key, let context): "\(DecodingError.field(context.codingPath + [key])) is missing"
    case .valueNotFound(let type, let context): "\(DecodingError.field(context.codingPath)) is null, not \(DecodingError.name(of: type))"
    case .typeMismatch(let type, let context): "\(DecodingError.field(context.codingPath)) is not \(DecodingError.name(of: type))"
    case .dataCorrupted(let context): "\(DecodingError.field(context.codingPath)) has a value that is not allowed"
    @unknown default: "the body does not have the form that is expected here"
    }
  }

  /// `the field 'lamps[2].level'`. A dictionary's keys are the client's own words: control characters are replaced, and the path is cut
  /// after 100 scalars.
  private static func field(_ path: [any CodingKey]) -> String {
    var text = ""
    for key in path {
      if let index = key.intValue { text += "[\(index)]" } else { text += (text.isEmpty ? "" : ".") + key.stringValue }
    }
    if text.isEmpty { return "the body" }
    var shown = String.UnicodeScalarView()
    for scalar in text.unicodeScalars.prefix(100) { shown.append(scalar.properties.generalCategory == .control ? "\u{fffd}" : scalar) }
    return "the field '\(String(shown))'"
  }

  private static func name(of type: Any.Type) -> String {
    switch type {
    case is any (FixedWidthInteger).Type: "a whole number in range"
    case is any BinaryFloatingPoint.Type: "a number"
    case is Bool.Type: "true or false"
    case is String.Type: "text"
    case is any Collection.Type where !(type is any ExpressibleByDictionaryLiteral.Type): "a list"
    default: "an object"
    }
  }
}
