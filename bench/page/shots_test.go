package page

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/working"
)

var shots = flag.String("shots", "", "folder for the pictures of TestShots")

// fill puts something of each kind into the store.
func (s *site) fill() {
	t, ctx := s.t, s.t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	texts := []string{"prefers short answers, with sources",
		"took the ferry from Bellagio to Varenna and wrote about the lake, " +
			"its ferries, the weather and the small harbour where the boats turn before they go back",
		"uses Go 1.26 on Debian, " +
			"and vim", "meets Ann in Como on Tuesday", "the deploy script is in ops/deploy.sh and wants two variables"}
	for i := range 40 {
		s.put(varve.Memory{ID: fmt.Sprintf("note-%02d", i), Content: "Ada " + texts[i%len(texts)],
			QuickRecalScore: float64(i%10) / 10,
			Metadata: map[string]any{"session_id": fmt.Sprint("trip-", i%4), "tags": []any{"travel",
				fmt.Sprint("day", i)},
				"category": "diary", "source": "desk"}})
	}
	s.put(varve.Memory{ID: "note-03", Content: "Ada meets Ann and Bob in Como on Wednesday, at noon",
		Metadata: map[string]any{
			"session_id": "trip-3", "tags": []any{"travel"}, "category": "diary"}})
	must(s.st.Delete(ctx, "note-09"))
	_, err := s.st.Assemblies().Put(ctx, varve.Assembly{ID: "lake", Name: "Trips to the lake",
		Description: "where she went",
		MemoryIDs:   []string{"note-01", "note-03", "note-06", "note-11", "note-13"}, Tags: []string{"travel"}})
	must(err)
	_, err = s.st.Notes().Write(ctx, "ideas/today.md",
		[]byte("---\ntype: plan\n---\n# Today\n\nAsk [Bob](../people/bob.md) about the "+
			"ferry; see [the timetable](https://example.com/ferry).\n\n| from | to | at |\n|---|---|--:|\n"+
			"| Bellagio | Varenna | 9:10 |\n\n"+
			"- book\n- pack\n\n```sh\nmemctl search ferry\n```\n"))
	must(err)
	_, err = s.st.Notes().Append(ctx, "ideas/today.md", []byte("\nDone.\n"))
	must(err)
	_, err = s.st.Notes().Write(ctx, "people/bob.md", []byte("# Bob\n\nCaptain.\n"))
	must(err)
	for _, m := range []varve.Memory{
		{ID: "entity:Ada", Content: "Ada (person)", Metadata: map[string]any{"category": "entity", "key": "Ada",
			"entityType": "person", "observations": []any{"writes short"}}},
		{ID: "entity:Bob", Content: "Bob (person)", Metadata: map[string]any{"category": "entity", "key": "Bob",
			"entityType": "person", "observations": []any{"captain"}}},
		relation("Ada", "knows", "Bob"), relation("Bob", "lives in", "Bellagio"), relation("Ada", "travels to",
			"Bellagio"),
		relation("Ada", "works with", "Eve"), relation("Eve", "lives in", "Como"),
	} {
		s.put(m)
	}
	w, err := s.st.Working().Open(ctx, working.Scope{Session: "trip-1"}, nil)
	must(err)
	must(w.Set(ctx, "plan", map[string]any{"step": 2, "of": 5}))
	_, err = w.Append(ctx, "ask about the ferry")
	must(err)
	_, err = w.Checkpoint(ctx, "before the trip")
	must(err)
	must(os.WriteFile(filepath.Join(s.st.Admin().Stats().Dir, "quarantine", "note-77.json"),
		[]byte(`{"id":"note-77"}`), 0o600))
}

// relation is a relation of the knowledge graph as package internal/graph stores it.
func relation(from, kind, to string) varve.Memory {
	return varve.Memory{ID: "relation:" + from + "|" + kind + "|" + to, Content: from + " " + kind + " " + to,
		Metadata: map[string]any{"category": "relation", "from": from, "to": to, "relationType": kind}}
}

// views are all views of a filled store.
var views = []string{"list", "list?q=ferry+lake", "memory?id=note-03", "memory?id=note-09", "edit?id=note-03",
	"edit", "purge?id=note-03",
	"log", "undo?run=coder", "writers", "sessions", "notes", "note?path=ideas/today.md",
	"note-edit?path=ideas/today.md",
	"assemblies", "assembly?id=lake", "graph", "working", "scope?key=session:trip-1", "quarantine",
	"quarantined?name=note-77.json", "health", "verify", "list?tag=nothing", "memory?id=none"}

// TestShots makes a picture of each view, at three widths, light and dark.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("-shots names no folder (VARVE_LONG=1 does not either)")
	}
	s := newSite(t)
	s.fill()
	b := s.newTab()
	name := regexp.MustCompile(`[^a-z0-9]+`)
	for _, width := range []int64{380, 768, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			b.do(chromedp.EmulateViewport(width, 900),
				emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}}))
			for _, v := range views {
				b.open(v)
				b.until(`document.documentElement.scrollWidth <= innerWidth`)
				var png []byte
				b.do(chromedp.CaptureScreenshot(&png))
				file := filepath.Join(*shots, fmt.Sprintf("%s-%d-%s.png", name.ReplaceAllString(v, "_"), width,
					scheme))
				if err := os.WriteFile(file, png, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
