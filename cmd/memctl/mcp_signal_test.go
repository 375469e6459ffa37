//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// A server that is told to end does so with everything durable and in its files.
func TestMCPTerminated(t *testing.T) {
	proofs.ManyProcesses(t, "processes")
	t.Parallel()
	memctl, store := memctlBinary(t), filepath.Join(t.TempDir(), "s")
	p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctl, "mcp", "--tools", "memory,graph")
	p.tool("create_entities", fmt.Sprintf(createOne, "kept"))
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil || strings.Contains(p.stderr.String(), "cancel") {
		t.Errorf("%v\n%s", err, p.stderr.String())
	}
	files, err := filepath.Glob(filepath.Join(store, "memories", "entity-kept*.json"))
	if err != nil || len(files) != 1 {
		t.Error(files, err)
	}
	// Only one group, and what is wrong is said on stderr.
	p = mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctl, "mcp", "--tools", "memory")
	if m := p.tool("read_graph", "{}"); !strings.Contains(fmt.Sprint(m), "Tool read_graph not found") {
		t.Error(m)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// A server whose client is gone, with all that it read from, ends as at the end of the
// input: with everything in its files.
func TestMCPClientGone(t *testing.T) {
	proofs.ManyProcesses(t, "processes")
	t.Parallel()
	memctl, store := memctlBinary(t), filepath.Join(t.TempDir(), "s")
	p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctl, "mcp", "--tools", "graph")
	p.tool("create_entities", fmt.Sprintf(createOne, "kept"))
	if err := p.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	p.send(`{"jsonrpc":"2.0","id":1000,"method":"tools/call","params":{"name":"read_graph"}}`)
	_ = p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, p.stderr.String())
	}
	files, err := filepath.Glob(filepath.Join(store, "memories", "entity-kept*.json"))
	if err != nil || len(files) != 1 {
		t.Error(files, err)
	}
}
