//go:build linux || darwin

package hostile

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/varve-db/varve/internal/proofs"
)

// optional are names that a store may have; if they do not exist, they are created.
var optional = []string{
	"moved.json", "wal/moved.json", "migrate.json", "wal/migrate.lock", "wal/expiry", "wal/aged",
	"wal/offsets", "wal/offsets.delta", "tmp/parked", "tmp/purge", "tmp/purge.manifest", "tmp/7", "tmp/7/0",
	"tmp/checkpoint.new",
	"vector_index/reembed", "vector_index/reembed.lock", "vector_index/mapping.delta.json", "vector_index/memory_vectors.delta.faiss",
	"memory_index.delta.json", "memories/new.json", "assemblies/new.json", "wal/00000099.wal", "wal/archive/00000099.zst", "backups/full",
	"backups/memory_index.1.json", "quarantine/repair-9999.undo.jsonl", "quarantine/0123456789abcdef-x.json", "notes.txt",
}

// above are the places where memctl looks for a store before it finds this one.
var above = []string{subDir + "/config.json", subDir + "/moved.json", subDir + "/storage", subDir + "/storage/config.json", subDir + "/storage/moved.json", subDir + "/storage/wal/open.lock",
	"project/config.json", "project/moved.json"}

// places returns everything that may be replaced.
func (tp *template) places(t *testing.T) []place {
	t.Helper()
	var all []place
	walk := func(group, root string) {
		err := filepath.WalkDir(tp.path(root), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(tp.dir, path)
			info, err := d.Info()
			all = append(all, place{group, rel, info})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	walk("store", storeDir)
	add := func(group, path string) {
		if !slices.ContainsFunc(all, func(p place) bool { return p.path == path }) {
			all = append(all, place{group, path, nil})
		}
	}
	for _, name := range optional {
		add("store", storeDir+"/"+name)
	}
	for _, name := range above {
		add("above", name)
	}
	walk("backup", backupDir)
	walk("backup", packedFile)
	walk("begun", begunDir)
	walk("input", inputDir)
	return all
}

// reads reports whether the command is concerned with the place.
func (c *command) reads(p place) bool {
	switch p.group {
	case "store", "above":
		return c.store
	}
	return slices.ContainsFunc(c.takes, func(in string) bool {
		return p.path == in || strings.HasPrefix(p.path, in+"/")
	})
}

// trials returns all cases.
func (tp *template) trials(t *testing.T) []*trial {
	t.Helper()
	var all []*trial
	cmds, things := tp.usual(t), kinds()
	for _, p := range tp.places(t) {
		for _, k := range things {
			if k.at != p.path && (k.at != "" || p.path == storeDir) { // the store itself may be a link: its user names it
				continue
			}
			if k.fits != nil && !k.fits(p.is) || k.root && os.Geteuid() != 0 {
				continue
			}
			for i := range cmds {
				c := &cmds[i]
				// A path that a user names may be a link; inside it none is followed.
				if c.reads(p) && !(k.large && c.copy) && !(strings.HasPrefix(k.name, "link-") && slices.Contains(c.takes, p.path)) {
					all = append(all, &trial{&p, &k, c})
				}
			}
		}
	}
	return all
}

// usual runs each command on the unchanged store, which must pass every check, and records its exit
// code.
func (tp *template) usual(t *testing.T) []command {
	t.Helper()
	all := commands()
	none := kind{name: "nothing", stays: true, make: func(box, string, string, fs.FileInfo) error { return nil }}
	info, err := os.Stat(tp.path(storeDir))
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		c := &trial{&place{"store", storeDir, info}, &none, &all[i]}
		found, r, err := c.run(tp, filepath.Join(base, "usual"))
		if err != nil {
			t.Fatalf("%s: %v", all[i].name, err)
		}
		for _, f := range found {
			if f.class != "unnamed" {
				t.Errorf("on the sound store: %s: %s: %s", f.class, all[i].name, f.text)
			}
		}
		all[i].usual = r.code
		if r.code != 0 && !slices.Contains([]int{4, 6}, r.code) {
			t.Errorf("on the sound store: %s: exit status %d: %s", all[i].name, r.code, short(r.text()))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
	return all
}

// TestHostile runs the cases, or a sample of them.
func TestHostile(t *testing.T) {
	needs(t)
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("VARVE_CI") != "" {
			t.Fatal("git is missing: apt-get install git")
		}
		t.Skip("git is missing: apt-get install git")
	}
	tp := newTemplate(t)
	if err := tp.clones(); err != nil {
		t.Fatal(err)
	}
	all := tp.trials(t)
	chosen, until := choose(t, all)
	log := newLog(t)
	var (
		next  atomic.Int64
		mu    sync.Mutex
		found []finding
		slows []string
		ran   int
		group sync.WaitGroup
	)
	for worker := range 2 {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(chosen) || time.Now().After(until) {
					return
				}
				c := chosen[i]
				these, r, err := c.run(tp, filepath.Join(base, fmt.Sprintf("box%d-%d", worker, i)))
				mu.Lock()
				if err != nil {
					t.Errorf("%s: the harness failed: %v", c, err)
				} else {
					ran++
					found = append(found, these...)
					log.add(these, c, r)
					if r.took > slow {
						slows = append(slows, fmt.Sprintf("%s: %s", c, r.took.Round(100*time.Millisecond)))
					}
					if testing.Verbose() && *caseFlag != "" {
						t.Logf("%s: exit %d, %s, %d MiB\n%s", c, r.code, r.took, r.rss>>20, short(r.text()))
					}
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	report(t, len(all), ran, found, slows)
}

// choose selects the cases to run, and the time at which to stop.
func choose(t *testing.T, all []*trial) (chosen []*trial, until time.Time) {
	t.Helper()
	never := time.Now().Add(1000 * time.Hour)
	if *caseFlag != "" {
		match, err := regexp.Compile(*caseFlag)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if match.MatchString(c.String()) {
				chosen = append(chosen, c)
			}
		}
		if len(chosen) == 0 {
			t.Fatalf("no case of %d is called %q", len(all), *caseFlag)
		}
		return chosen, never
	}
	seed := proofs.Seed(t, *seedFlag)
	t.Logf("%d cases; again in this order: go test ./tests/hostile -hostile.seed %d", len(all), seed)
	chosen = slices.Clone(all)
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if *partFlag != "" {
		var part, parts int
		if n, err := fmt.Sscanf(*partFlag, "%d/%d", &part, &parts); n != 2 || err != nil || part < 1 || part > parts {
			t.Fatalf("-hostile.part is K/N, with K from 1 to N, not %q", *partFlag)
		}
		chosen = chosen[len(chosen)*(part-1)/parts : len(chosen)*part/parts]
		t.Logf("part %s of them: %d cases", *partFlag, len(chosen))
	}
	size := time.Second // .ci/run has more in its step of proofs
	switch {
	case *sizeFlag == "full":
		return chosen, never
	case *sizeFlag != "":
		d, err := time.ParseDuration(*sizeFlag)
		if err != nil {
			t.Fatalf("-hostile wants full, or a time: %v", err)
		}
		size = d
	case proofs.Long():
		size = 20 * time.Minute // all of them, some 165,000, take four hours on two cores
	}
	return chosen, time.Now().Add(size)
}

// soft are the classes that are counted and reported, and do not fail the test.
var soft = []string{"internal", "unnamed", "lost, as repair says"}

// report reports the violations, by class.
func report(t *testing.T, cases, ran int, found []finding, slows []string) {
	t.Helper()
	slices.SortFunc(found, func(a, b finding) int { return strings.Compare(a.class+a.trial, b.class+b.trial) })
	counts := map[string]int{}
	for _, f := range found {
		counts[f.class]++
		switch {
		case slices.Contains(soft, f.class):
		case counts[f.class] <= 20:
			t.Errorf("%s: %s: %s\n  again: go test ./tests/hostile -hostile.case '^%s$' -v", f.class, f.trial, f.text, regexp.QuoteMeta(f.trial))
		default:
			t.Fail()
		}
	}
	t.Logf("%d of %d cases ran; slower than %s: %d; what did not hold: %v", ran, cases, slow, len(slows), counts)
}

// logged writes violations as they are found: a full run takes an hour or two.
type logged struct{ file *os.File }

func newLog(t *testing.T) *logged {
	t.Helper()
	if *outFlag == "" {
		return &logged{}
	}
	f, err := os.Create(*outFlag)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &logged{f}
}

func (l *logged) add(found []finding, c *trial, r *result) {
	if l.file == nil {
		return
	}
	for _, f := range found {
		fmt.Fprintf(l.file, "%s: %s\n\t%s\n", f.class, f.trial, strings.ReplaceAll(f.text, "\n", "\n\t"))
	}
	if r.took > slow {
		fmt.Fprintf(l.file, "slow: %s: %s\n", c, r.took.Round(100*time.Millisecond))
	}
}

// TestEveryCommand: there is a case for each command of memctl.
func TestEveryCommand(t *testing.T) {
	needs(t)
	known := map[string]bool{}
	for _, c := range commands() {
		words := strings.Fields(c.name)
		for i := range words {
			known[strings.Join(words[:i+1], " ")] = true
		}
	}
	var visit func(path []string)
	visit = func(path []string) {
		help := command{args: append([]string{"help"}, path...)}
		r, err := help.start(box{base}, false)
		if err != nil || r.code != 0 {
			t.Fatalf("help %v: %v, exit status %d: %s", path, err, r.code, r.text())
		}
		_, list, _ := strings.Cut(r.out, "\nAvailable Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0] == "completion" { // it writes a script of the shell and opens nothing
				continue
			}
			next := append(slices.Clone(path), words[0])
			if !known[strings.Join(next, " ")] {
				t.Errorf("no case runs memctl %s: add it to commands()", strings.Join(next, " "))
			}
			visit(next)
		}
	}
	if err := os.MkdirAll(filepath.Join(base, subDir), 0o755); err != nil {
		t.Fatal(err)
	}
	visit(nil)
}
