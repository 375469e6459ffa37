package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var before = flag.String("before", "", "memctl of a version without a word index, for the engine scan")

// scan is a version of Varve from before it had a word index: each search counts the words of all memories. Its
// library has the same import path as this one, so the benchmark talks to its memctl, as an agent does (Model
// Context Protocol).
type scan struct {
	store   string
	session *mcp.ClientSession
}

// Shared implements shared.
func (s *scan) Shared() string { return "scan" }

func (s *scan) Open(dir string) (err error) {
	if *before == "" {
		return errors.New("-before does not name a memctl: build one as described in doc.go")
	}
	s.store = filepath.Join(dir, "store")
	client := mcp.NewClient(&mcp.Implementation{Name: "finding", Version: "1"}, nil)
	command := exec.Command(*before, "mcp", "--store", s.store, "--tools", "memory")
	command.Stderr = os.Stderr
	s.session, err = client.Connect(context.Background(), &mcp.CommandTransport{Command: command}, nil)
	return err
}

// PutAll imports documents as lines of JSON.
func (s *scan) PutAll(docs func(yield func(doc) bool)) (err error) {
	command := exec.Command(*before, "import", "-", "--from", "jsonl", "--store", s.store, "--quiet")
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewWriter(in)
	enc := json.NewEncoder(lines)
	docs(func(d doc) bool {
		err = enc.Encode(map[string]any{"id": d.id, "content": d.text, "metadata": map[string]any{"session_id": d.session}})
		return err == nil
	})
	return errors.Join(err, lines.Flush(), in.Close(), command.Wait())
}

func (s *scan) Search(query, session string, _ bool) error {
	args := map[string]any{"query": query, "by": "words"}
	if session != "" {
		args["session"] = session
	}
	result, err := s.session.CallTool(context.Background(), &mcp.CallToolParams{Name: "recall", Arguments: args})
	if err == nil && result.IsError {
		text, _ := json.Marshal(result.Content)
		err = fmt.Errorf("recall: %s", text)
	}
	return err
}

func (s *scan) Close() error { return s.session.Close() }

// Index returns 0, because there is no index.
func (s *scan) Index(string, int, int64) int64 { return 0 }
