package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// A call that has others deleted to make room says so to the model and to programs; the next one
// that deletes nothing does not.
func TestMCPEvicted(t *testing.T) {
	proofs.ManyProcesses(t, "it starts a server")
	t.Parallel()
	store := filepath.Join(t.TempDir(), "storage")
	st, err := varve.Open(t.Context(), store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Admin().UpdateConfig(t.Context(), func(c *varve.Config) error {
		c.MaxMemories, c.AtLimit = 2, varve.AtLimitEvictOldest
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	p := mcpStart(t, []string{cli.StoreVariable + "=" + store}, memctlBinary(t), "mcp", "--structured")
	var ids []string
	for i, text := range []string{"the first", "the second", "the third", "the third"} {
		r := p.tool("remember", `{"text":"`+text+`","key":"`+text+`"}`)["result"].(map[string]any)
		ids = append(ids, r["structuredContent"].(map[string]any)["id"].(string))
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		says := strings.Contains(string(b), "1 memory was deleted to make room: "+ids[0]) && strings.Contains(string(b), `"varve/evicted":{"count":1,"first":"`+ids[0]+`"}`)
		if says != (i == 2) || !says && strings.Contains(string(b), "make room") {
			t.Errorf("remembering %s gets %s", text, b)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
