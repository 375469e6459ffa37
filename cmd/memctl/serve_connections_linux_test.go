package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// TestServeManyConnections: 1,000 connections of clients that send nothing do not use up the 256 files that the process
// may open, so that others are served, and what is written reaches its files.
func TestServeManyConnections(t *testing.T) {
	proofs.ManyProcesses(t, "memctl serve is a process, with 1,000 connections")
	t.Parallel()
	dir := t.TempDir()
	limited := filepath.Join(dir, "limited")
	if err := os.WriteFile(limited, []byte("#!/bin/sh\nulimit -n 256\nexec \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := startServing(t, dir)
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Fatal(code)
	}
	s.args = append([]string{limited}, s.args...)
	s.start()
	client := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer client.CloseIdleConnections()
	_, o := s.api(t.Context(), client, "GET", "", nil)
	data, _ := o["data"].([]any)
	if len(data) != 1 {
		t.Fatal(o)
	}
	first, _ := data[0].(map[string]any)
	at := fmt.Sprint("/", first["id"], "/memories")
	files := 0
	addr := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
	for i := range 1000 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if i%100 == 0 {
			client.CloseIdleConnections() // a client that is new
		}
		if i%50 != 0 {
			continue
		}
		path := fmt.Sprintf("/%d.md", i)
		body := map[string]any{"path": path, "content": "x"}
		if status, o := s.api(t.Context(), client, "POST", at, body); status != 200 {
			t.Fatalf("beside %d connections: %d %v", i, status, o)
		}
		list, err := os.ReadDir(fmt.Sprint("/proc/", s.cmd.Process.Pid, "/fd"))
		if err != nil {
			t.Fatal(err)
		}
		files = max(files, len(list))
	}
	if files > 200 {
		t.Errorf("the server has %d files open", files)
	}
	t.Logf("at most %d open files", files)
	file := filepath.Join(dir, "s", "notes", "950.md")
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil && string(b) == "x" {
			break
		}
		if time.Now().After(end) {
			t.Error("the last memory is not in its file")
			break
		}
	}
	if code := s.end(syscall.SIGTERM); code != cli.CodeOK {
		t.Errorf("exit status %d after SIGTERM", code)
	}
}
