package importer

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// TestRealSynthians: rows 24, 33 and 36 of the failures from which the formats are known were found in
// this very store.
func TestRealSynthians(t *testing.T) {
	t.Parallel()
	proofs.OneGoroutine(t)
	dir := proofs.SharedData(t, "synthians-6ac7868")
	if f, err := Detect(dir); f != Synthians || err != nil {
		t.Fatalf("detected as %q, %v", f, err)
	}
	g := drain(t, dir, "", Options{})
	if n := len(g.items); n != 358 {
		t.Errorf("%d items, want 358", n)
	}
	var unindexed []string
	for _, p := range g.of(KindUnindexed) {
		unindexed = append(unindexed, p.ID)
		if !p.Taken {
			t.Errorf("%v was not taken", p)
		}
	}
	slices.Sort(unindexed)
	want := []string{"mem_03fef7141498", "mem_1d2fa71a13e3", "mem_3dc6bcbbc384", "mem_5ff6f5b1166f", "mem_932b60b56c52", "mem_a88d2f7b9572", "mem_e9004371e349"}
	if !slices.Equal(unindexed, want) {
		t.Errorf("unindexed %q, want %q", unindexed, want)
	}
	ghosts := g.of(KindGhost)
	if len(ghosts) != 56 {
		t.Errorf("%d ghosts, want 56", len(ghosts))
	}
	found := slices.ContainsFunc(ghosts, func(p Problem) bool {
		return p.ID == "mem_a334c66cc2dd" && p.Reason == "mapped to vector 3175314461854146565, but the id has no file and no entry in the index"
	})
	if !found {
		t.Errorf("the first ghost is not named with its number: %v", ghosts[:min(3, len(ghosts))])
	}
	// The first of the 46 ordinals is 0, which is not a valid number here; the md5 numbers belong to
	// ghosts.
	numbered := 0
	for _, it := range g.items {
		if it.VectorID > 0 {
			numbered++
		}
	}
	if numbered != 45 || len(g.assemblies) != 0 {
		t.Errorf("%d numbers of vectors kept, want 45; %d assemblies", numbered, len(g.assemblies))
	}
	if len(g.report.Files) != 3 {
		t.Errorf("%v", g.report.Files)
	}
	if n := len(g.of(KindCopy)); n != 2 {
		t.Errorf("%d .bak, want 2", n)
	}
	if len(g.problems) != 7+56+2 {
		t.Errorf("%d problems, want 65: %v", len(g.problems), g.problems)
	}
}

func TestRealLucidia(t *testing.T) {
	t.Parallel()
	g := drain(t, proofs.SharedData(t, "lucidia-legacy"), "", Options{})
	if len(g.items) != 64 || len(g.problems) != 0 {
		t.Errorf("%d items, want 64; problems %v", len(g.items), g.problems)
	}
}

func TestRealVizor(t *testing.T) {
	t.Parallel()
	plus2 := time.FixedZone("", 2*60*60)
	g := drain(t, proofs.SharedData(t, "vizor-sessions"), "", Options{Location: plus2})
	if len(g.items) != 71 || len(g.problems) != 0 {
		t.Errorf("%d items, want 71; problems %v", len(g.items), g.problems)
	}
	withMetadata := 0
	for _, it := range g.items {
		var m struct {
			Timestamp time.Time
			Metadata  map[string]any
		}
		if err := json.Unmarshal(it.JSON, &m); err != nil {
			t.Fatal(err)
		}
		if len(m.Metadata) > 3 {
			withMetadata++
		}
		if m.Metadata["key"] == "comp_truss_001" && m.Metadata["session_id"] == "session_20250614_162839" {
			if want := time.Date(2025, 6, 14, 16, 28, 39, 892096000, plus2); !m.Timestamp.Equal(want) {
				t.Errorf("timestamp %v, want %v", m.Timestamp, want)
			}
			if m.Metadata["type"] != "timber_truss" || m.Metadata["description"] != "50m span main truss" || m.Metadata["category"] != "components" {
				t.Errorf("metadata %v", m.Metadata)
			}
		}
	}
	if withMetadata != 3 {
		t.Errorf("%d with metadata of their own, want 3", withMetadata)
	}
}
