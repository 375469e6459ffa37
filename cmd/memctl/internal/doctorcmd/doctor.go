package doctorcmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
	"github.com/varve-db/varve/repair"
)

// Setting is a setting of config.json that doctor may show.
type Setting struct {
	Name string
	// Value returns the value if it is a number, a boolean, or one of a fixed list, nil if it is the default,
	// and "set" for any other text.
	Value func(c *varve.Config) any
}

// Limits of what doctor does.
const (
	lockWait     = 2 * time.Second
	embedderWait = 5 * time.Second
	mostFiles    = 300_000 // maximum number of files that are counted
	sampleFrom   = 2_000   // with this many memories or more, verify reads only a sample, unless --full is given
	sampleParts  = 50
	fewFiles     = 1024 // a limit of open files below this is too low for a server
)

// report is the report of doctor, in the form of its JSON output.
type report struct {
	Version  any            `json:"memctl"`
	System   system         `json:"system"`
	Set      []string       `json:"environment"` // names of the environment variables of memctl that are set
	Store    place          `json:"store"`
	Sizes    []size         `json:"sizes"`
	Counts   *counts        `json:"counts"`   // numbers about the store; null: the store cannot be opened
	Settings map[string]any `json:"settings"` // settings that differ from their defaults
	Locks    []locked       `json:"locks"`
	Embedder *embedder      `json:"embedder"` // null: no embedder is configured
	Verify   *verified      `json:"verify"`   // null: there is no store
	Events   []event        `json:"events"`   // events of opening the store
	Wrong    []wrong        `json:"wrong"`
	Next     string         `json:"next"`
}

// place describes the folder of the store.
type place struct {
	Found bool `json:"found"`
	// what named the store: --store, VARVE_STORE, "the current folder" or "the default of memctl mcp"
	By       string `json:"by"`
	Owner    string `json:"owner"` // "this user", "another user" or "unknown"
	Mode     string `json:"mode,omitempty"`
	Volume   string `json:"file_system,omitempty"`
	Coherent bool   `json:"locks_work"` // the file system supports locks and shared memory between processes
	ReadOnly bool   `json:"read_only"`
	Free     int64  `json:"free_bytes"`
	Total    int64  `json:"total_bytes"`
	Inodes   int64  `json:"free_files"`
}

// size is the disk space of one part of the store.
type size struct {
	Part  string `json:"part"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// counts are numbers about an open store.
type counts struct {
	Memories   int64  `json:"memories"`
	Assemblies int64  `json:"assemblies"`
	Vectors    int64  `json:"vectors"`
	Dimension  int    `json:"dimension"`
	Backlog    int64  `json:"backlog_bytes"`
	Unflushed  int64  `json:"unflushed_bytes"`
	History    int64  `json:"history_bytes"`
	Processes  int    `json:"processes"`
	Unsure     int    `json:"processes_unsure"`
	Watched    bool   `json:"watched"`
	Writable   bool   `json:"writable"`
	Slowed     bool   `json:"slowed"`
	Pending    int64  `json:"embed_pending"`
	Aside      int    `json:"quarantined"`
	LastFlush  string `json:"last_flush,omitempty"`
	LastBackup string `json:"last_backup,omitempty"`
}

// embedder describes whether the embedding service answers.
type embedder struct {
	Answers bool   `json:"answers"`
	Took    string `json:"took,omitempty"`
	Error   string `json:"error,omitempty"`
}

// verified is the result of verifying the store.
type verified struct {
	Of         string           `json:"of"` // "everything", or the part of the files that was read
	Files      int64            `json:"files"`
	Entries    int64            `json:"entries"`
	Findings   map[string]int64 `json:"findings"`
	Worst      string           `json:"worst"`
	Incomplete string           `json:"incomplete,omitempty"` // reason why the verification ended early
}

// event is an event of opening the store.
type event struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	Error string `json:"error,omitempty"`
}

// wrong is one problem, with the command that the user should run first to solve it.
type wrong struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix"`
}

// examination is one run of doctor.
type examination struct {
	a    *cli.App
	dir  string
	full bool
	red  *redactor
	r    report
}

// Command returns memctl doctor. settings are the settings of config.json that it shows.
func Command(a *cli.App, settings []Setting) *cobra.Command {
	full := false
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Show in one text what a bug report needs",
		Long: `Show versions, the system, limits, the file system, sizes, settings that differ from their defaults, locks
and their holders, the health of the store, the summary of verify, whether the embedding service
answers, and at the end what is wrong, with the command that helps first.

The text has no contents, ids, names, keys or paths, so that it can go into a report. Nothing is
written into the store. It works on a store that is damaged, in use, full, or of another user, and
without a store. Of a large store verify reads a part; --full reads everything.`,
		Example: "  memctl doctor\n  memctl doctor --full --json > doctor.json",
		Args:    cli.NoArguments,
		RunE: a.Do(func(cmd *cobra.Command, _ []string) error {
			e := &examination{a: a, full: full}
			e.run(cmd.Context(), settings)
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if a.Document != nil {
				a.Document.All(e.r)
				return nil
			}
			e.print()
			return nil
		}),
	}
	c.Flags().BoolVar(&full, "full", false, "verify everything")
	return c
}

func (e *examination) run(ctx context.Context, settings []Setting) {
	a := e.a
	e.r = report{Version: cli.ThisBuild(), System: systemNow(), Set: []string{}, Sizes: []size{}, Locks: []locked{},
		Settings: map[string]any{}, Events: []event{}, Wrong: []wrong{}}
	for _, v := range cli.Variables() {
		for name := range strings.SplitSeq(v.Name, ", ") {
			if a.Getenv(name) != "" {
				e.r.Set = append(e.r.Set, name)
			}
		}
	}
	dir, err := a.LocateOrDefault()
	e.dir = dir
	e.red = newRedactor(dir, a.Getenv)
	switch {
	case err != nil:
		e.r.Store.By = "no way"
	case a.Store != "":
		e.r.Store.By = "--store"
	case a.Named() != "":
		e.r.Store.By = cli.StoreVariable
	default:
		e.r.Store.By = "the current folder"
		if near, nerr := a.Locate(); nerr != nil || near != dir {
			e.r.Store.By = "the default of memctl mcp"
		}
	}
	if err != nil {
		e.addError(err)
	} else {
		e.look(dir)
		e.settings(dir, settings)
		e.open(ctx)
	}
	e.embedder(ctx)
	if n := e.r.System.OpenFiles; n > 0 && n < fewFiles {
		e.wrong("limit", fmt.Sprintf("this process may open only %d files", n), fmt.Sprintf("ulimit -n %d", 4*fewFiles))
	}
	e.r.Next = "no problem was found"
	if len(e.r.Wrong) > 0 {
		e.r.Next = e.r.Wrong[0].Fix
	}
}

// addError adds an error to the report's list of problems.
func (e *examination) addError(err error) {
	f := cli.Classify(err)
	fix := e.red.err(errors.New(f.Fix))
	if fix == "" {
		fix = "memctl verify"
	}
	e.wrong(f.Kind, e.red.err(err), fix)
}

func (e *examination) wrong(kind, message, fix string) {
	w := wrong{kind, message, fix}
	if !slices.Contains(e.r.Wrong, w) {
		e.r.Wrong = append(e.r.Wrong, w)
	}
}

// look examines the folder of the store, without opening the store.
func (e *examination) look(dir string) {
	p := &e.r.Store
	p.Found, p.Owner = cli.IsStore(dir), "unknown"
	fsys := vfs.OS()
	if info, err := fsys.Stat(dir); err == nil {
		p.Mode = info.Mode.String()
		if self := vfs.SelfOn(fsys, e.a.Getenv); self.Trusted(&info) {
			p.Owner = "this user"
		} else {
			p.Owner = "another user"
		}
	}
	for at := dir; ; at = filepath.Dir(at) { // of a folder that does not exist yet, the one above
		v, err := fsys.Volume(at)
		if err == nil {
			p.Volume, p.Coherent, p.ReadOnly, p.Free, p.Total, p.Inodes = v.Type, v.Coherent, v.ReadOnly, v.Free, v.Total,
				v.FreeFiles
			break
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	if !p.Found {
		return
	}
	if p.Volume != "" && !p.Coherent {
		e.wrong("file system", "memctl cannot tell whether locks between processes work on "+p.Volume,
			"let one process at a time open the store, or move it to a local disk: memctl migrate --to DIR")
	}
	e.sizes(dir)
}

// sizes measures the files of each part of the store, and finds the locks that processes hold on them.
func (e *examination) sizes(dir string) {
	inodes, n := map[uint64]string{}, 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		e.addError(err)
		return
	}
	rest := size{Part: "other files"}
	for _, entry := range entries {
		s := size{Part: entry.Name()}
		if !places.MatchString(entry.Name()) { // a folder of the user
			s.Part = ""
		}
		err := filepath.WalkDir(filepath.Join(dir, entry.Name()), func(path string, d fs.DirEntry, err error) error {
			if n++; n > mostFiles {
				return fs.SkipAll
			}
			if err != nil || d.IsDir() {
				return nil // what cannot be read is told by open and verify
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			s.Files, s.Bytes = s.Files+1, s.Bytes+info.Size()
			if ino, ok := inode(info); ok && strings.HasSuffix(path, ".lock") {
				inodes[ino] = filepath.Base(path)
			}
			return nil
		})
		if err != nil {
			e.addError(err)
		}
		if s.Part == "" {
			rest.Files, rest.Bytes = rest.Files+s.Files, rest.Bytes+s.Bytes
		} else {
			e.r.Sizes = append(e.r.Sizes, s)
		}
	}
	if rest.Files > 0 {
		e.r.Sizes = append(e.r.Sizes, rest)
	}
	if n > mostFiles {
		e.r.Sizes = append(e.r.Sizes, size{Part: "and more that were not counted"})
	}
	if b, err := os.ReadFile("/proc/locks"); err == nil {
		e.r.Locks = append(e.r.Locks, locksIn(string(b), inodes)...)
	}
}

func (e *examination) settings(dir string, all []Setting) {
	if !e.r.Store.Found {
		return
	}
	b, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		return // open tells
	}
	var c, none varve.Config
	if json.Unmarshal(b, &c) != nil {
		return
	}
	for _, s := range all {
		if v := s.Value(&c); fmt.Sprint(v) != fmt.Sprint(s.Value(&none)) {
			if text, ok := v.(string); ok {
				v = e.red.text(text)
			}
			e.r.Settings[s.Name] = v
		}
	}
}

// open opens the store read-only, and verifies it.
func (e *examination) open(ctx context.Context) {
	if !e.r.Store.Found {
		e.addError(varve.ErrNoStore)
		return
	}
	o := &varve.Options{ReadOnly: true, MustExist: true, LockWait: min(e.a.Wait, lockWait), Clock: e.a.Clock,
		NoBackground: true, Listener: e.heard}
	st, err := varve.Open(ctx, e.dir, o)
	if err != nil {
		e.addError(err)
		o.Listener = nil
		e.verify(ctx, varve.VerifyOptions{}, func(v varve.VerifyOptions) func(func(varve.Finding, error) bool) {
			return varve.VerifyFolder(ctx, e.dir, o, v)
		})
		return
	}
	defer func() {
		if err := st.Close(); err != nil {
			e.addError(err)
		}
	}()
	n, report, health := st.Admin().Stats(), st.Admin().OpenReport(), st.Health(ctx)
	e.r.Counts = &counts{Memories: n.Memories, Assemblies: n.Assemblies, Vectors: n.Vectors, Dimension: n.Dimension,
		Backlog: n.Backlog, Unflushed: n.Unflushed, History: n.HistoryBytes, Processes: len(n.Processes),
		Unsure: len(n.Unsure) + len(n.Elsewhere), Watched: n.Watcher != 0, Slowed: health.Slowed != "",
		Pending: health.Pending, Writable: report.Damage == nil && e.writable()}
	if info, err := os.Stat(filepath.Join(e.dir, "checkpoint")); err == nil { // by any process
		e.r.Counts.LastFlush = info.ModTime().UTC().Format(time.RFC3339)
	}
	if at := st.Admin().LastBackup(); !at.IsZero() {
		e.r.Counts.LastBackup = at.UTC().Format(time.RFC3339)
	}
	if aside, err := st.Admin().Quarantine().Count(); err == nil {
		e.r.Counts.Aside = aside
	}
	for _, err := range slices.Concat(health.Problems, report.Problems) {
		e.addError(err)
	}
	for range st.Admin().RefusedEdits(ctx) {
		e.wrong("edit", "a file that was edited by hand cannot be adopted", "memctl status")
	}
	v := varve.VerifyOptions{}
	if n.Memories+n.Assemblies+health.Notes.Count > sampleFrom && !e.full {
		v.Part, v.Parts = 1, sampleParts
	}
	e.verify(ctx, v, func(v varve.VerifyOptions) func(func(varve.Finding, error) bool) {
		return st.Admin().Verify(ctx, v)
	})
}

// writable reports whether this user may write into the store's folder. It uses the owner of the folder and the state
// of the volume, and does not try to write.
func (e *examination) writable() bool { return !e.r.Store.ReadOnly && e.r.Store.Owner == "this user" }

func (e *examination) heard(ev varve.Event) {
	kind, text := string(ev.Kind), e.red.err(ev.Err)
	for i := range e.r.Events {
		if at := &e.r.Events[i]; at.Kind == kind && at.Error == text {
			at.Count++
			return
		}
	}
	e.r.Events = append(e.r.Events, event{kind, 1, text})
}

func (e *examination) verify(ctx context.Context, o varve.VerifyOptions,
	findings func(varve.VerifyOptions) func(func(varve.Finding, error) bool)) {
	s := &verified{Of: "everything", Findings: map[string]int64{}}
	if o.Parts > 0 {
		s.Of = fmt.Sprintf("one of %d parts of the files; --full reads everything", o.Parts)
	}
	e.r.Verify = s
	sum := varve.VerifySummary{}
	o.Summary = &sum
	progress, done := e.a.Bar("verifying")
	o.Progress = progress
	defer done()
	worst, fix := repair.Info, ""
	for f, err := range findings(o) {
		if err != nil {
			if s.Incomplete = e.red.err(err); ctx.Err() == nil {
				e.addError(err)
			}
			break
		}
		s.Findings[string(f.Kind)]++
		if f.Severity > worst {
			worst, fix = f.Severity, e.red.text(f.Next)
		}
	}
	s.Files, s.Entries = sum.Files, sum.Entries
	if len(s.Findings) > 0 {
		s.Worst = worst.String()
	}
	if worst > repair.Info {
		var kinds []string
		for _, kind := range slices.Sorted(maps.Keys(s.Findings)) {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind, s.Findings[kind]))
		}
		if fix == "" {
			fix = "memctl repair"
		}
		e.wrong("damage", "verify found "+strings.Join(kinds, ", "), fix)
	}
}

// embedder requests the vector of one word from the embedding service, if environment variables configure one.
func (e *examination) embedder(ctx context.Context) {
	service, err := e.a.Embedder()
	if err == nil && service == nil {
		return
	}
	e.r.Embedder = &embedder{}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, embedderWait)
		defer cancel()
		begun := time.Now()
		if _, err = service.Embed(ctx, []string{"doctor"}); err == nil {
			e.r.Embedder.Answers, e.r.Embedder.Took = true, time.Since(begun).Round(time.Millisecond).String()
			return
		}
	}
	e.r.Embedder.Error = e.red.err(err)
	f := cli.Classify(err)
	e.wrong("embedding service", e.red.err(err), e.red.text(f.Fix))
}
