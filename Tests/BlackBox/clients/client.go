// SPDX-FileCopyrightText: The Door authors
// SPDX-License-Identifier: MIT

// One request by Go's net/http with its default transport, told as one line of JSON.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"strings"
	"time"
)

func main() {
	bodyFile := flag.String("body", "", "file to send")
	chunked := flag.Bool("chunked", false, "send the body without a length")
	expect := flag.Bool("expect", false, "send Expect: 100-continue and wait for the leave")
	host := flag.String("host", "", "Host to send")
	flag.Parse()

	var body io.Reader
	var length int64
	if *bodyFile != "" {
		file, err := os.Open(*bodyFile)
		check(err)
		info, err := file.Stat()
		check(err)
		body, length = file, info.Size()
	}
	request, err := http.NewRequest(flag.Arg(0), flag.Arg(1), body)
	check(err)
	request.ContentLength = length
	if *chunked {
		request.ContentLength = -1
	}
	if *expect {
		request.Header.Set("Expect", "100-continue")
	}
	if *host != "" {
		request.Host = *host
	}
	request.Header.Set("Content-Type", "application/x-test")
	continued := false
	trace := &httptrace.ClientTrace{Got100Continue: func() { continued = true }}
	request = request.WithContext(httptrace.WithClientTrace(request.Context(), trace))
	// So long that a body sent with `continued` still false was sent on a final answer, not on impatience.
	http.DefaultTransport.(*http.Transport).ExpectContinueTimeout = 20 * time.Second

	response, err := http.DefaultClient.Do(request)
	check(err)
	data, err := io.ReadAll(response.Body)
	check(err)
	sum := sha256.Sum256(data)
	headers := map[string]string{}
	for name, values := range response.Header {
		headers[strings.ToLower(name)] = values[len(values)-1]
	}
	// Go takes Content-Length out of the headers of some answers and keeps it here.
	if response.ContentLength >= 0 {
		headers["content-length"] = fmt.Sprint(response.ContentLength)
	}
	text := ""
	if len(data) <= 4096 {
		text = string(data)
	}
	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"status": response.StatusCode, "headers": headers, "length": len(data),
		"sha256": hex.EncodeToString(sum[:]), "text": text, "continued": continued,
	}))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
