//go:build linux || darwin

package hostile

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// place is a place in the box that is replaced, by its path.
type place struct {
	group string // store, above, backup, begun, input
	path  string
	is    fs.FileInfo // nil: it is not there
}

// trial is one case.
type trial struct {
	*place
	*kind
	*command
}

func (c *trial) String() string { return c.place.path + " " + c.kind.name + " " + c.command.name }

// finding is a violation of one of the rules.
type finding struct {
	class string
	trial string
	text  string
}

// documented are the exit codes in the help.
var documented = []int{0, 1, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 64, 130}

var crash = regexp.MustCompile(`(?m)^(panic: |fatal error: |unexpected fault address|goroutine \d+ \[|SIG[A-Z]+: )`)

// run runs the case in dir, which it creates and removes, and returns the violations.
func (c *trial) run(tp *template, dir string) (all []finding, r *result, err error) {
	b := box{dir}
	defer func() {
		if rerr := clear(dir); err == nil {
			err = rerr
		}
	}()
	found := func(class, format string, args ...any) {
		all = append(all, finding{class, c.String(), fmt.Sprintf(format, args...)})
	}
	if err := copyTree(tp.dir, dir); err != nil {
		return nil, nil, err
	}
	h, err := c.replace(b)
	if err != nil {
		return nil, nil, err
	}
	if c.nobody && os.Geteuid() == 0 {
		if err := give(dir); err != nil {
			return nil, nil, err
		}
	}
	skip := c.writes()
	before, err := b.watch(skip)
	if err != nil {
		return nil, nil, err
	}
	if r, err = c.start(b, c.nobody); err != nil {
		return nil, nil, err
	}
	after, err := b.watch(skip)
	if err != nil {
		return nil, nil, err
	}
	c.judge(r, found)
	for _, change := range changes(before, after) {
		found("outside", "%s", change)
	}
	for _, part := range []string{storeDir, outDir, begunDir} {
		leaked, err := leaks(b.path(part))
		if err != nil {
			return nil, nil, err
		}
		for _, path := range leaked {
			found("secret", "%s has what only a file outside says", strings.TrimPrefix(path, dir))
		}
	}
	if c.heals && r.code != 14 && !r.hung {
		v := command{name: "verify", args: []string{"verify"}}
		vr, err := v.start(b, c.nobody)
		if err != nil {
			return nil, nil, err
		}
		if vr.code != 0 && !(vr.code == r.code && (c.closed || r.code == 3 && c.moves())) {
			found("not whole", "repair exit %d, then verify exit %d: %s\nrepair said: %s", r.code, vr.code, short(vr.text()), short(r.text()))
		}
	}
	if err := h.takeAway(); err != nil {
		return nil, nil, err
	}
	if c.place.group == "store" || c.place.group == "above" {
		if err := c.kept(tp, b, r, found); err != nil {
			return nil, nil, err
		}
	}
	return all, r, nil
}

// judge checks how the command ended.
func (c *trial) judge(r *result, found func(class, format string, args ...any)) {
	switch {
	case r.hung:
		found("hang", "it had not ended after %s: %s", *longest, where(r.err))
		return
	case crash.MatchString(r.err):
		found("crash", "%s", short(r.err[crash.FindStringIndex(r.err)[0]:]))
	case !slices.Contains(documented, r.code):
		found("code", "exit status %d", r.code)
	case r.code == 1:
		found("internal", "%s", short(r.text()))
	case r.code != 0 && r.code != 130 && c.place.group != "above" && !strings.Contains(r.text(), filepath.Base(c.path)) && !c.explained(r):
		found("unnamed", "exit status %d: %s", r.code, short(r.text()))
	}
	if r.endless {
		found("endless", "more than %d bytes of output", told)
	}
	if r.rss > largest+c.room {
		found("memory", "%d MiB resident", r.rss>>20)
	}
	if strings.Contains(r.text(), secret) {
		found("secret", "printed: %s", short(r.text()[max(0, strings.Index(r.text(), secret)-80):]))
	}
}

// moves reports whether the place says that the store is elsewhere, or a copy. Repair does not decide
// that for its user when the place cannot be read.
func (c *trial) moves() bool {
	return slices.Contains([]string{"moved.json", "migrate.json"}, filepath.Base(c.path))
}

// explained reports whether the command also fails on the intact store, because of its arguments.
func (c *trial) explained(r *result) bool {
	return r.code == c.usual || slices.Contains([]int{4, 5, 64}, r.code)
}

// writes returns the folders that the command may change.
func (c *trial) writes() []string {
	all := []string{storeDir, outDir, tempDir, stateDir}
	if strings.HasPrefix(c.command.name, "migrate begun") {
		all = append(all, begunDir)
	}
	return all
}

// hostile is what replaces the original at a place.
type hostile struct {
	c     *trial
	path  string
	moved string
	made  fs.FileInfo
}

// replace puts an object of the kind in its place.
func (c *trial) replace(b box) (*hostile, error) {
	h := &hostile{c: c, path: b.path(c.path), moved: b.dir + ".moved"}
	if c.stays {
		return h, c.make(b, h.path, h.path, c.is)
	}
	if c.is != nil {
		if err := os.Rename(h.path, h.moved); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return nil, err
	}
	if err := c.make(b, h.path, h.moved, c.is); err != nil {
		return nil, err
	}
	h.made, _ = os.Lstat(h.path)
	return h, nil
}

// takeAway restores the original, if the replacement is still in its place: the store then has the same
// content as before.
func (h *hostile) takeAway() error {
	if h.c.stays {
		if info, err := os.Lstat(h.path); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return nil
		}
		return os.Chmod(h.path, h.c.is.Mode().Perm())
	}
	now, err := os.Lstat(h.path)
	switch {
	case h.made == nil && err == nil: // it was gone, and is there again
		return nil
	case h.made != nil && (err != nil || !os.SameFile(now, h.made)): // the store has dealt with it
		return nil
	}
	if err == nil {
		if err := clear(h.path); err != nil {
			return err
		}
	}
	if h.c.is == nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Dir(h.path)); err != nil { // migrate has taken the store away
		return nil
	}
	return os.Rename(h.moved, h.path)
}

// kept checks that every document exists, after a repair if one is necessary.
func (c *trial) kept(tp *template, b box, r *result, found func(class, format string, args ...any)) error {
	var missing []string
	var last string
	for round := range 2 {
		got := map[string]string{} // of the folder that has the most
		for _, dir := range c.stores() {
			export := command{args: []string{"--store", b.path(dir), "export"}}
			x, err := export.start(b, c.nobody)
			if err != nil {
				return err
			}
			has, err := documents([]byte(x.out))
			if err != nil {
				return err
			}
			if len(has) >= len(got) {
				got, last = has, short(x.err)
			}
			if x.code == 0 {
				break
			}
		}
		missing = missing[:0]
		for id, want := range tp.want {
			if text, ok := got[id]; (!ok || text != want) && !slices.Contains(c.loses, id) {
				missing = append(missing, id)
			}
		}
		if len(missing) == 0 {
			return nil
		}
		if round == 0 {
			fix := command{args: []string{"--store", b.path(storeDir), "repair", "--apply"}}
			if _, err := fix.start(b, c.nobody); err != nil {
				return err
			}
		}
	}
	slices.Sort(missing)
	class := "lost"
	if c.heals && r.code == 3 {
		class = "lost, as repair says"
	}
	found(class, "%d of %d documents (%s): %s; the command: exit %d %s", len(missing), len(tp.want), strings.Join(missing, ", "), last, r.code, short(r.text()))
	return nil
}

// stores returns the folders in which the store may be afterwards.
func (c *trial) stores() []string {
	if c.gone {
		return []string{storeDir, outDir + "/moved", begunDir}
	}
	return []string{storeDir}
}

// ours matches a line of a dump that names a function of this module.
var ours = regexp.MustCompile(`(?m)^(?:main|github\.com/varve-db/varve[^(]*)\..*\(`)

// where returns the functions of this module in which a stopped process was: those of the goroutine with
// the most of them.
func where(dump string) string {
	var best []string
	for part := range strings.SplitSeq(dump, "\n\n") {
		if names := ours.FindAllString(part, -1); len(names) > len(best) {
			best = names
		}
	}
	if best == nil {
		return short(dump)
	}
	return short(strings.Join(best, " < "))
}

func short(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 900 {
		s = s[:900] + "…"
	}
	return s
}

// give makes the unprivileged user the owner of everything.
func give(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobodyID, nobodyID)
	})
}

// clear removes a folder, including files that may not be read.
func clear(dir string) error {
	err := os.RemoveAll(dir)
	if err != nil {
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	if merr := os.RemoveAll(dir + ".moved"); err == nil {
		err = merr
	}
	return err
}
