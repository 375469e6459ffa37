package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/proofs"
)

// The deletion of an entity takes every relation of its name along, in its own commit,
// while clients of two other servers make more of them without a pause.
func TestMCPDeleteBesideMakers(t *testing.T) {
	proofs.ManyProcesses(t, "many processes")
	t.Parallel()
	memctl, store := memctlBinary(t), filepath.Join(t.TempDir(), "s")
	env := []string{cli.StoreVariable + "=" + store}
	deleter := mcpStart(t, env, memctl, "mcp", "--tools", "graph")
	st, err := varve.Open(t.Context(), store, &varve.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	from := st.Admin().Stats().Durable
	stop := make(chan struct{})
	var makers sync.WaitGroup
	for k := range 2 {
		p := mcpStart(t, env, memctl, "mcp", "--tools", "graph")
		makers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					if err := p.end(); err != nil {
						t.Error(err)
					}
					return
				default:
				}
				p.tool("create_relations", fmt.Sprintf(`{"relations":[{"from":"hub","to":"%d","relationType":"r%d"},{"from":"x","to":"y%d","relationType":"r"}]}`, i, k, i))
			}
		})
	}
	const deletions = 40
	for range deletions {
		deleter.tool("create_entities", `{"entities":[{"name":"hub","entityType":"t","observations":[]}]}`)
		if m := deleter.tool("delete_entities", `{"entityNames":["hub"]}`); strings.Contains(fmt.Sprint(m), "isError") {
			t.Error(m)
		}
	}
	close(stop)
	makers.Wait()
	if err := deleter.end(); err != nil {
		t.Error(err)
	}
	alive, made, deleted, gone := map[string]bool{}, 0, 0, false
	for c, err := range st.Admin().Changes(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case c.ID == "entity:hub":
			gone = c.Deleted
		case !strings.HasPrefix(c.ID, "relation:hub|"):
		case c.Deleted:
			delete(alive, c.ID)
		default:
			alive[c.ID] = true
			made++
		}
		if gone && !c.More {
			if deleted++; len(alive) > 0 {
				t.Fatalf("deletion %d, at %d, left %v", deleted, c.LSN, alive)
			}
			gone = false
		}
	}
	t.Logf("%d relations were made beside %d deletions", made, deleted)
	if deleted != deletions || made < deletions {
		t.Errorf("%d deletions beside %d relations", deleted, made)
	}
}
