package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/varve-db/varve/memorystores"
	"github.com/varve-db/varve/server"
)

// served is a running memctl serve, with its clients.
type served struct {
	cmd    *exec.Cmd
	url    string
	token  string
	client *http.Client
	store  string   // path of the store in the API
	ids    []string // ids of the memories in the API, by number; see pathOf
}

// serve starts memctl serve for a store.
func serve(ctx context.Context, memctl, store, dir string) (*served, error) {
	s := &served{token: server.NewSecret(), client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: mostClients}, Timeout: time.Minute}}
	tokens := filepath.Join(dir, "tokens.json")
	if err := server.AddToken(ctx, tokens, server.Token{Name: "bench", Sum: server.SumOf(s.token)}); err != nil {
		return nil, err
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	s.url = "http://" + addr
	s.cmd = exec.CommandContext(ctx, memctl, "serve", "-q", "--addr", addr, "--tokens", tokens, "--store", store,
		"--max-requests", fmt.Sprint(2*mostClients))
	s.cmd.Env = append(os.Environ(), "VARVE_EMBED_URL=")
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for range 3000 {
		if s.send(ctx, http.MethodGet, "/readyz", nil, nil) == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.Join(errors.New("memctl serve did not start to answer"), s.end())
}

// end ends the server.
func (s *served) end() error {
	s.client.CloseIdleConnections()
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return s.cmd.Wait()
}

// send sends a request, and decodes the answer into out unless out is nil.
func (s *served) send(ctx context.Context, method, path string, body, out any) error {
	var in io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, in)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Anthropic-Beta", memorystores.Betas()[0])
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"isError":true`))) {
		err = &statusError{res.StatusCode, string(text[:min(len(text), 300)])}
	}
	if err == nil && out != nil {
		err = json.Unmarshal(text, out)
	}
	return err
}

type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

// learn requests the ids of the first memories.
func (s *served) learn(ctx context.Context, n int) error {
	var stores struct{ Data []struct{ ID string } }
	if err := s.send(ctx, http.MethodGet, memorystores.Base, nil, &stores); err != nil {
		return err
	}
	s.store = memorystores.Base + "/" + stores.Data[0].ID + "/memories"
	at := map[string]string{}
	for page := ""; ; {
		var list struct {
			Data []struct{ ID, Path string }
			Next *string `json:"next_page"`
		}
		if err := s.send(ctx, http.MethodGet, s.store+"?limit=100"+page, nil, &list); err != nil {
			return err
		}
		for _, m := range list.Data {
			at[strings.TrimPrefix(m.Path, "/")] = m.ID
		}
		if list.Next == nil {
			break
		}
		page = "&page=" + *list.Next
	}
	for i := range n {
		s.ids = append(s.ids, at[pathOf(i)])
	}
	return nil
}

func (s *served) create(ctx context.Context, _, _ int, content string) error {
	return s.send(ctx, http.MethodPost, s.store, map[string]any{"path": fmt.Sprintf("/new/%d.md", created.Add(1)),
		"content": content}, nil)
}

func (s *served) get(ctx context.Context, _, n int) error {
	return s.send(ctx, http.MethodGet, s.store+"/"+s.ids[n], nil, nil)
}

func (s *served) update(ctx context.Context, _, n int, content string) error {
	for {
		var m struct {
			Hash string `json:"content_sha256"`
		}
		if err := s.send(ctx, http.MethodGet, s.store+"/"+s.ids[n]+"?view=basic", nil, &m); err != nil {
			return err
		}
		err := s.send(ctx, http.MethodPost, s.store+"/"+s.ids[n], map[string]any{"content": content,
			"precondition": map[string]any{"type": "content_sha256", "content_sha256": m.Hash}}, nil)
		var failed *statusError
		if !errors.As(err, &failed) || failed.status != http.StatusConflict {
			return err
		}
	}
}

func (s *served) list(ctx context.Context, _ int) error {
	return s.send(ctx, http.MethodGet, s.store+"?limit=100", nil, nil)
}

func (s *served) search(ctx context.Context, _ int, words string) error {
	return s.send(ctx, http.MethodPost, "/mcp", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
		"params": map[string]any{"name": "recall", "arguments": map[string]any{"query": words, "limit": 10}}}, nil)
}
