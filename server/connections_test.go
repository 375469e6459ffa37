package server

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/fixture"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/served"
)

// dial opens a connection to the server.
func (v *site) dial() net.Conn {
	v.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(v.url, "http://"))
	if err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (v *site) send(c net.Conn, text string) {
	v.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		v.t.Fatal(err)
	}
}

// ended waits until the server has closed a connection, and returns the status line that it sent before, or "".
func (v *site) ended(c net.Conn, within time.Duration) string {
	v.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		v.t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if e := net.Error(nil); errors.As(err, &e) && e.Timeout() {
		v.t.Errorf("still open after %v; the server sent %.200q", within, all)
	}
	line, _, _ := strings.Cut(string(all), "\r\n")
	return line
}

const mcpHead = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer all\r\n" +
	"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"

// Requests that are never completed end by their time limits; others are answered meanwhile, and after them.
func TestHalfRequests(t *testing.T) {
	t.Parallel()
	v := serving(t, func(o *Options) { o.Timeout, o.Requests = time.Second, 8 })
	var open []net.Conn
	for _, text := range []string{
		"", "P", "POST /mcp HTTP/1.1\r\nHost: loc", // its headers are waited for
		mcpHead + "Content-Length: 1000\r\n\r\n{\"jsonrpc\"",
		mcpHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"js",
		"POST " + memorystores.Base + " HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: guess\r\nContent-Length: 99\r\n\r\n{",
	} {
		c := v.dial()
		v.send(c, text)
		open = append(open, c)
	}
	for range 20 {
		if status, answer := v.tool("all", "recall", `{"query":"x"}`); status != 200 {
			t.Fatal(status, answer)
		}
	}
	var all sync.WaitGroup
	for i, c := range open {
		all.Go(func() {
			if line := v.ended(c, 2*headerTimeout); strings.Contains(line, " 200") {
				t.Errorf("half request %d is answered: %s", i, line)
			}
		})
	}
	all.Wait()
	for _, text := range []string{
		"\x16\x03\x01\x00\xa5\x01", // TLS
		"GET /healthz\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n", mcpHead + "Content-Length: -1\r\n\r\n",
		mcpHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
	} {
		c := v.dial()
		v.send(c, text+"\r\n\r\n")
		if line := v.ended(c, 2*headerTimeout); !strings.Contains(line, " 400") && !strings.Contains(line, " 505") &&
			line != "" {
			t.Errorf("%q: %s", text, line)
		}
	}
	if status, answer := v.tool("all", "recall", `{"query":"x"}`); status != 200 {
		t.Error(status, answer)
	}
}

// A client that does not read its answer is disconnected after the time limit of its request.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	v := serving(t, func(o *Options) {
		o.Timeout = 100 * time.Millisecond
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			var err error
			for b := make([]byte, 1<<20); err == nil; {
				_, err = w.Write(b)
			}
			ended <- err
		})
	})
	c := v.dial()
	v.send(c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: all\r\n\r\n")
	select {
	case <-ended:
	case <-time.After(3 * headerTimeout):
		t.Error("the answer is still being written")
	}
}

// narrow is a listener whose connections send little that was not read.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.SetWriteBuffer(4<<10))
	}
	return c, err
}

// A client that listens for changes and does not read is disconnected, and does not keep the others from hearing of
// changes.
func TestDeafListener(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("how much a connection holds that was not read depends on the system")
	}
	v := serving(t, nil)
	if err := v.stop(); err != nil {
		t.Fatal(err)
	}
	v.startOn(func(l net.Listener) net.Listener { return narrow{l} })
	const request = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":` + listenParams + `}`
	head := mcpHead + "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"
	deaf := v.dial()
	if err := deaf.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	v.send(deaf, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(request), request))
	listening, status := v.listen("all")
	if status != 200 {
		t.Fatal(status)
	}
	var heard atomic.Int64
	go func() {
		for lines := bufio.NewScanner(listening); lines.Scan(); {
			if strings.Contains(lines.Text(), "resources/updated") {
				heard.Add(1)
			}
		}
	}()
	change := func(n int) {
		t.Helper()
		if status, answer := v.tool("all", "create_entities", fmt.Sprintf(
			`{"entities":[{"name":"e%d","entityType":"t","observations":[]}]}`, n)); status != 200 {
			t.Fatal(status, answer)
		}
	}
	hears := func(since int64, within time.Duration) bool {
		for end := time.Now().Add(within); heard.Load() == since; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				return false
			}
		}
		return true
	}
	n := 0
	for stalled := false; !stalled; n++ {
		if n == 5000 {
			t.Fatal("the client that does not read holds up nothing")
		}
		before := heard.Load()
		change(n)
		stalled = !hears(before, 3*time.Second)
	}
	before := heard.Load()
	change(n)
	if !hears(before, 3*pieceTimeout) {
		t.Errorf("after %d changes the client that reads hears nothing", n)
	}
}

// A thousand open connections, each of which sends a request, are served, and leave nothing when they end.
func TestManyConnections(t *testing.T) {
	t.Parallel()
	const connections = 1000
	v := serving(t, nil)
	open := make([]net.Conn, connections)
	for i := range open {
		open[i] = v.dial()
	}
	for round := range 2 {
		var all sync.WaitGroup
		var refused atomic.Int64
		for at := range 50 {
			all.Go(func() {
				for i := at; i < connections; i += 50 {
					c := open[i]
					_, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
					var res *http.Response
					if err == nil {
						res, err = http.ReadResponse(bufio.NewReader(c), nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
					if res.StatusCode != http.StatusOK {
						refused.Add(1)
					}
				}
			})
		}
		if status, answer := v.tool("all", "remember", fmt.Sprintf(`{"text":"beside them %d"}`, round)); status != 200 {
			t.Error(status, answer)
		}
		all.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%d of %d were refused", n, connections)
		}
	}
	for _, c := range open {
		_ = c.Close()
	}
	if status, answer := v.tool("all", "recall", `{"query":"beside"}`); status != 200 ||
		!strings.Contains(answer, "them 1") {
		t.Error(status, answer)
	}
}

// Connections without a request give way to new ones, also those with half of a request, and connections with a
// request do not.
func TestConnectionsGiveWay(t *testing.T) {
	t.Parallel()
	const most = 30
	hold, held := make(chan struct{}), make(chan struct{})
	v := serving(t, func(o *Options) {
		o.Connections = most
		o.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(held)
			<-hold
			_, _ = io.WriteString(w, "whole")
		})
	})
	running := v.dial()
	v.send(running, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: all\r\nConnection: close\r\n\r\n")
	<-held
	used := v.dial() // its client has had an answer, and waits
	v.send(used, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(used), nil); err != nil || res.StatusCode != 200 {
		t.Fatal(err)
	}
	var strangers []net.Conn
	for i := range 4 * most {
		c := v.dial()
		if i%2 == 0 {
			v.send(c, "POST /mcp HT")
		}
		strangers = append(strangers, c)
	}
	for range 3 * most { // each of these is a new connection
		status, answer := v.raw("GET", "/healthz", "")
		if status != 200 {
			t.Fatal(status, answer)
		}
	}
	v.ended(used, headerTimeout/2)
	for _, c := range strangers[:3*most] {
		v.ended(c, headerTimeout/2) // before the time for headers is over
	}
	close(hold)
	if b, err := io.ReadAll(running); err != nil || !strings.HasSuffix(string(b), "whole") {
		t.Errorf("a request under way was cut off: %q, %v", b, err)
	}
	v.s.conns.mu.Lock()
	defer v.s.conns.mu.Unlock()
	if n := len(v.s.conns.open); n > most || v.s.conns.waiting.Len() > n {
		t.Errorf("%d connections are open, %d of them wait", n, v.s.conns.waiting.Len())
	}
}

// On a full disk agents and applications are told so, and existing data can be read and deleted; when there is room,
// everything continues.
func TestFullDisk(t *testing.T) {
	fixture.OnSmallDisks(t, func(t *testing.T, d *fixture.SmallDisk) {
		v := servingIn(t, d.Dir, &d.O, func(o *Options, held *served.Store) {
			var err error
			o.MemoryStores, err = memorystores.Single(held, memorystores.Options{Caller: CallerOf, Name: "s"})
			if err != nil {
				t.Fatal(err)
			}
		})
		beta := []string{"x-api-key: all", "anthropic-beta: " + memorystores.Betas()[0]}
		_, _, answer := v.do("GET", memorystores.Base, "", beta...)
		_, id, _ := strings.Cut(answer, `"id":"`)
		id, _, _ = strings.Cut(id, `"`)
		memories := memorystores.Base + "/" + id + "/memories"
		create := func(n int) (int, string) {
			status, _, answer := v.do("POST", memories, fmt.Sprintf(`{"path":"/%d.md","content":%q}`, n,
				strings.Repeat("much text ", 100)), beta...)
			return status, answer
		}
		if status, answer := create(0); status != 200 {
			t.Fatal(status, answer)
		}
		d.Fill(4096)
		status, n := 200, 1
		for ; status == 200 && n < 5000; n++ { // the rest of the log
			status, answer = create(n)
		}
		if status != http.StatusInternalServerError || !strings.Contains(answer, "the disk of the server is full") {
			t.Errorf("%d %s", status, answer)
		}
		if status, answer := v.tool("all", "remember", fmt.Sprintf(`{"text":%q}`,
			strings.Repeat("y", 2000))); !strings.Contains(answer, "full") {
			t.Error(status, answer)
		}
		if status, _, answer := v.do("GET", memories+"?view=full", "", beta...); status != 200 ||
			!strings.Contains(answer, "much text") {
			t.Error(status, answer)
		}
		d.Empty()
		if status, answer := create(n); status != 200 {
			t.Error("with room:", status, answer)
		}
		if status, answer := v.tool("all", "remember", `{"text":"with room"}`); status != 200 ||
			strings.Contains(answer, `"isError":true`) {
			t.Error(status, answer)
		}
	})
}
