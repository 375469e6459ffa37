//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/memorystores/conformance"
)

// api calls the Memory Stores API of a server; path is below the stores.
func (s *webServer) api(ctx context.Context, client *http.Client, method, path string, body any) (int, map[string]any) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, nil
	}
	s.mu.Lock()
	url := strings.TrimSuffix(s.url, "/mcp")
	s.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, method, url+memorystores.Base+path, bytes.NewReader(b))
	if err != nil {
		return 0, nil
	}
	if body == nil {
		req.Body = http.NoBody
	}
	req.Header.Set("X-Api-Key", s.token)
	req.Header.Set("Anthropic-Beta", memorystores.Betas()[0])
	res, err := client.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	var o map[string]any
	if err != nil || json.Unmarshal(raw, &o) != nil {
		return 0, nil
	}
	return res.StatusCode, o
}

// Clients of several stores, whose server is killed: what was acknowledged is there, and they go on.
func TestServeStoresKilled(t *testing.T) {
	proofs.ManyProcesses(t, "a server that is killed")
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, nil, "--stores", filepath.Join(dir, "stores"))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	const clients, kills = 16, 4
	var stores []string
	for i := range 4 {
		status, o := s.api(t.Context(), client, "POST", "", map[string]any{"name": fmt.Sprint(i)})
		if status != 200 {
			t.Fatal(status, o)
		}
		stores = append(stores, fmt.Sprint("/", o["id"]))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var mu sync.Mutex
	acknowledged := map[string]string{} // content by store and path
	began := make(chan struct{}, 1)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			store := stores[i%len(stores)]
			at, path := "", ""
			for n := 0; ctx.Err() == nil; n++ {
				content := fmt.Sprintf("client %d says %d", i, n)
				in := map[string]any{"content": content}
				if at == "" {
					path = fmt.Sprintf("/%d/%d.md", i, n)
					in["path"] = path
				}
				status, o := s.api(ctx, client, "POST", store+"/memories"+at, in)
				if status != 200 {
					if at != "" {
						at = "" // its content is one of two
						mu.Lock()
						delete(acknowledged, store+path)
						mu.Unlock()
					}
					time.Sleep(10 * time.Millisecond) // the server is gone; it is asked again
					continue
				}
				if at == "" || n%20 != 0 {
					at = fmt.Sprint("/", o["id"])
				} else {
					at = ""
				}
				mu.Lock()
				acknowledged[store+path] = content
				mu.Unlock()
				select {
				case began <- struct{}{}:
				default:
				}
			}
		})
	}
	for range kills {
		for range 100 { // some work between two kills
			<-began
		}
		s.end(syscall.SIGKILL)
		s.start()
	}
	stop()
	all.Wait()
	there := map[string]string{}
	for _, store := range stores {
		for at := ""; ; {
			status, o := s.api(t.Context(), client, "GET", store+"/memories?view=full"+at, nil)
			data, _ := o["data"].([]any)
			if status != 200 {
				t.Fatal(status, o)
			}
			for _, item := range data {
				m, _ := item.(map[string]any)
				there[fmt.Sprint(store, m["path"])] = fmt.Sprint(m["content"])
			}
			if o["next_page"] == nil {
				break
			}
			at = fmt.Sprint("&page=", o["next_page"])
		}
	}
	last := 0
	for path, content := range acknowledged {
		switch got, ok := there[path]; {
		case !ok:
			t.Errorf("%s is lost", path)
		case got != content:
			last++ // an update that was under way at the end may have happened
		}
	}
	if last > clients {
		t.Errorf("%d memories have another content than the acknowledged one, more than were under way", last)
	}
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
	t.Logf("%d memories acknowledged, %d kills", len(acknowledged), kills)
}

// The whole API of the command, with one store beside MCP, and with a folder of stores.
func TestServeStores(t *testing.T) {
	proofs.ManyProcesses(t, "memctl serve is a process")
	t.Parallel()
	dir := t.TempDir()
	s := startServer(t, dir, nil, "--stores", filepath.Join(dir, "stores"))
	conformance.Run(t, s.url, s.token)
	single := startServing(t, t.TempDir())
	status, o := single.api(t.Context(), http.DefaultClient, "GET", "", nil)
	data, _ := o["data"].([]any)
	if status != 200 || len(data) != 1 {
		t.Fatal(status, o)
	}
	store, _ := data[0].(map[string]any)
	status, o = single.api(t.Context(), http.DefaultClient, "POST", fmt.Sprint("/", store["id"], "/memories"),
		map[string]any{"path": "/a.md", "content": "by the API"})
	if status != 200 || store["name"] != "s" {
		t.Error(status, o, store)
	}
	http.DefaultClient.CloseIdleConnections()
}
