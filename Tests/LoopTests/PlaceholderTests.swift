import Testing

@testable import Loop
