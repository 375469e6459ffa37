//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// TestServeDrains: after SIGTERM a request under way has the time of --drain, and connections without a request do not
// hold up the end.
func TestServeDrains(t *testing.T) {
	proofs.ManyProcesses(t, "memctl serve is a process")
	t.Parallel()
	s := startServing(t, t.TempDir(), "--drain", "5m")
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	send := func(c net.Conn, text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	dial()
	send(dial(), "POST /mcp HT")
	c := dial()
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call",` +
		`"params":{"name":"remember","arguments":{"text":"late"}}}`
	send(c, fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n"+
		"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n",
		s.token, len(call)))
	answers := bufio.NewReader(c)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100") { // its body is read
		t.Fatal(line, err)
	}
	if _, err := answers.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	send(c, call[:40])
	ended := make(chan int, 1)
	began := time.Now()
	go func() { ended <- s.end(syscall.SIGTERM) }()
	select {
	case code := <-ended:
		t.Fatalf("the server has ended after %v, with exit status %d", time.Since(began), code)
	case <-time.After(3 * time.Second): // other commands end within two
	}
	send(c, call[40:])
	res, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if text, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(text), "remembered") {
		t.Errorf("%s %v", text, err)
	}
	if code := <-ended; code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the server has ended after %v", took)
	}
}
