package upkeep

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/internal/vfs"
)

func Status(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the state of the store",
		Long: `Show the folder of the store, its size, the processes that have it open, known problems, and the
next command. memctl without a command shows the same. Nothing is changed, except in a clone: its
missing log and index are built from the files.`,
		Example: "  memctl status\n  memctl status --json | jq .memories",
		Args:    cli.NoArguments,
		RunE:    a.Do(func(cmd *cobra.Command, _ []string) error { return ShowStatus(cmd.Context(), a) }),
	}
}

// State is the state of a store that status shows.
type State struct {
	Store      string      `json:"store"`
	UUID       string      `json:"uuid"`
	Memories   int64       `json:"memories"`
	Assemblies int64       `json:"assemblies"`
	Notes      *notesState `json:"notes,omitempty"`
	Vectors    *vectors    `json:"vectors"` // null: they cannot be read now, and a problem has the reason
	Bytes      int64       `json:"memory_bytes"`
	Scopes     int64       `json:"working_scopes"` // scopes that have working memory
	Expired    int64       `json:"expired"`        // expired memories: invisible already, and not deleted yet
	Limits     *limits     `json:"limits"`         // null: the store has no limits
	IndexBytes int64       `json:"index_bytes"`
	LogBytes   int64       `json:"log_bytes"`        // bytes that opening the store would read
	Unflushed  int64       `json:"unflushed_bytes"`  // bytes of log that are not in files yet
	Fits       int64       `json:"fits"`             // memories of the mean size that the disk has room for, 0: unknown
	Slowed     string      `json:"slowed,omitempty"` // why commits wait
	// config.json is missing or invalid: the store removes nothing because of its settings
	Unknown bool `json:"settings_unknown,omitempty"`
	// number of bytes of old log that are kept in addition to the log itself
	History int64 `json:"history_bytes"`
	// time at which the oldest part of log and history begins, null: unknown
	Since *time.Time `json:"history_since"`
	// number of redacted versions whose bytes are not overwritten yet
	Redacted  int    `json:"to_overwrite,omitempty"`
	Writable  bool   `json:"writable"`
	ReadOnly  string `json:"read_only,omitempty"` // reason for which the system does not permit writing
	Processes []int  `json:"processes"`
	Unseen    []int  `json:"processes_unseen,omitempty"` // registered processes that are not visible here
	// the process that adopts edits of files, null: none
	Watcher *int `json:"watcher"`
	// Reason for which the watcher checks all files each minute instead of being notified of changes.
	Polls      string     `json:"watcher_polls,omitempty"`
	LastFlush  *time.Time `json:"last_flush"`
	LastBackup *time.Time `json:"last_backup"`
	Refused    *refused   `json:"refused_edits"`
	SetAside   int        `json:"quarantined"` // number of files in quarantine/
	Embedder   *embedder  `json:"embedder"`    // null: no service is configured
	// progress of a copy of the log on another machine; null: the store has no such copy
	Copy     *copied         `json:"copy"`
	Adopted  []adoptedFolder `json:"adopted,omitempty"`
	Problems []string        `json:"problems"`
	Next     string          `json:"next"`

	gravest  error // the gravest problem that is not a full disk
	full     bool  // the disk is full, or nearly
	filled   error // the error, if the disk is full
	unlinked int   // number of problems that are about adopted folders
	away     []int // those of Unseen that are in another PID namespace
}

// copied is the progress of a copy of the log on another machine.
type copied struct {
	Sent    uint64     `json:"sent"`              // log position up to which the copy has the log
	At      *time.Time `json:"at"`                // time at which the position was last recorded, null: unknown
	Behind  int64      `json:"behind_bytes"`      // number of bytes of log that the copy lacks
	Problem string     `json:"problem,omitempty"` // reason for which the copy cannot continue
	// URL of the copy, if this machine sends to it; whether a process sends; the last attempt that sent everything; the
	// error of the last attempt
	Place   string     `json:"place,omitempty"`
	Sending bool       `json:"sending"`
	Success *time.Time `json:"last_success"`
	Error   string     `json:"error,omitempty"`

	err error
}

func copiedOf(h *varve.CopyHealth) *copied {
	if !h.Follows {
		return nil
	}
	c := &copied{Sent: h.Sent, Behind: h.Behind, Place: h.Place, Sending: h.Sending, Success: cli.OrNil(h.Success),
		Error: h.LastErr, err: h.Err}
	if !h.At.IsZero() {
		c.At = &h.At
	}
	if h.Err != nil {
		c.Problem = h.Err.Error()
	}
	return c
}

func ShowStatus(ctx context.Context, a *cli.App) error {
	dir, err := a.Locate()
	if err != nil {
		return err
	}
	err = statusIn(ctx, a, dir, cli.Look)
	if cli.IsUnready(err) {
		err = statusIn(ctx, a, dir, cli.Read) // the first status makes a clone a store
	}
	return err
}

func statusIn(ctx context.Context, a *cli.App, dir string, how cli.Access) error {
	e, invalid := a.Embedder() // the embedder is not called
	return a.WithIn(ctx, dir, how, Query(e), func(st *varve.Store) error {
		s := stateOf(ctx, dir, st)
		s.Embedder = embedderOf(ctx, st, e, invalid)
		switch {
		case s.gravest != nil:
			a.Tell(s.failure())
		case s.filled != nil:
			f := cli.Classify(s.filled)
			f.Path, f.Fix = s.Store, s.Next
			a.Tell(f)
		}
		if a.Document != nil {
			a.Document.All(s)
			return nil
		}
		showState(a, s)
		return nil
	})
}

// failure returns the gravest problem as a Failure. Only verify can determine whether damage can be repaired; the
// failure says only that there is a problem. A disk that is nearly full is no failure.
func (s *State) failure() *cli.Failure {
	return &cli.Failure{Kind: "damage", Message: s.gravest.Error(), Path: s.Store, Fix: s.Next, Code: cli.CodeDamage}
}

func stateOf(ctx context.Context, dir string, st *varve.Store) State {
	files := vfs.Below(vfs.OS(), dir)
	n, report, health := st.Admin().Stats(), st.Admin().OpenReport(), st.Health(ctx)
	s := State{
		Store: dir, UUID: n.UUID, Memories: n.Memories, Assemblies: n.Assemblies, IndexBytes: n.IndexSize,
		LogBytes: n.Backlog, Unflushed: n.Unflushed, Fits: health.Space.Fits, Slowed: health.Slowed,
		Unknown: health.SettingsUnknown, Writable: report.Damage == nil, Processes: n.Processes, Problems: []string{},
		LastFlush: modified(files, filepath.Join(dir, "checkpoint")),
	}
	if at := st.Admin().LastBackup(); !at.IsZero() {
		s.LastBackup = &at
	}
	s.Copy, s.Redacted = copiedOf(&health.Copy), n.ToOverwrite
	if s.History = n.HistoryBytes; !n.HistorySince.IsZero() {
		s.Since = &n.HistorySince
	}
	if path, err := filepath.Abs(dir); err == nil {
		s.Store = path
	}
	if p := (*varve.PermissionError)(nil); errors.As(health.ReadOnly, &p) {
		s.Writable, s.ReadOnly = false, readOnly(p)
	}
	linked := (*varve.LinkedError)(nil)
	if errors.As(health.ReadOnly, &linked) {
		s.Writable, s.ReadOnly = false, linked.Error()
	}
	self := func(pid int) bool { return pid == os.Getpid() }
	s.Processes = slices.DeleteFunc(append([]int{}, s.Processes...), self)
	// A process in another container, or a killed one that cannot be checked, stays on the list.
	unseen := func(pid int) bool { return slices.Contains(n.Unsure, pid) && vfs.Process(pid).Command == "" }
	for _, pid := range s.Processes {
		if unseen(pid) {
			s.Unseen = append(s.Unseen, pid)
		}
	}
	s.Processes = slices.DeleteFunc(s.Processes, unseen)
	s.Unseen = append(s.Unseen, n.Elsewhere...)
	s.away = n.Elsewhere
	if n.Watcher != 0 {
		s.Watcher, s.Polls = &n.Watcher, n.WatcherPolls
	}
	var verr error
	if s.Vectors, verr = vectorsOf(ctx, st, &n); verr != nil {
		health.Problems = append(health.Problems, fmt.Errorf("the vectors: %w", verr))
	}
	var nerr error
	if s.Notes, nerr = notesIn(ctx, st); nerr != nil {
		health.Problems = append(health.Problems, nerr)
	}
	var edits []error
	s.Refused, edits = refusedIn(ctx, st)
	for _, err := range slices.Concat(health.Problems, report.Problems, edits) {
		if errors.As(err, &linked) { // not damage: shown as the reason why the store cannot be written
			continue
		}
		if s.Copy != nil && s.Copy.err != nil && errors.Is(err, s.Copy.err) { // the store itself works
			continue
		}
		switch full := errors.Is(err, varve.ErrDiskFull); {
		case full:
			if s.full = true; health.Space.Full() {
				s.filled = err
			}
		case s.gravest == nil:
			s.gravest = err
		}
		if text := err.Error(); !slices.Contains(s.Problems, text) { // two sources may report the same problem
			s.Problems = append(s.Problems, text)
		}
	}
	if u, err := st.Admin().Usage(ctx); err == nil {
		s.Bytes, s.Expired = u.Bytes, u.Expired
	}
	for _, err := range st.Working().Home().Scopes(ctx) {
		if err == nil {
			s.Scopes++
		}
	}
	s.Adopted = s.adoptedIn(dir)
	if n, err := st.Admin().Quarantine().Count(); err == nil {
		s.SetAside = n
	}
	s.Limits = limitsIn(st.Admin().Config())
	s.Next = next(&s)
	return s
}

func (s *State) expired() string {
	if s.Expired == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of them expired and will be deleted within an hour or two", s.Expired)
}

// next returns the command that status recommends for this state of the store.
func next(s *State) string {
	switch {
	case s.full && s.gravest == nil:
		return "memctl rm ID, or make room on the disk"
	case s.Unknown && len(s.Problems) == 1:
		return "correct or restore config.json, or run memctl repair --apply"
	case len(s.Problems) > 0 && len(s.Problems) == s.unlinked:
		return "memctl note adopt DIR, for the folders that the problems name"
	case len(s.Problems) > 0:
		return "memctl verify"
	case s.Memories == 0 && s.Notes == nil && s.ReadOnly == "":
		return `memctl put "what is to be remembered"`
	case s.Unflushed > 0 && len(s.Processes) == 0 && s.ReadOnly == "":
		return "memctl flush"
	case s.Memories == 0 && s.Notes != nil:
		return "memctl note ls"
	}
	return "memctl list"
}

const nameWidth = 11 // width in columns of the name at the beginning of a line

func showState(a *cli.App, s State) {
	line := func(name, format string, args ...any) {
		a.Out.InColour(cli.Bold, cli.Pad(name, nameWidth))
		text := fmt.Sprintf(format, args...)
		if name != "store" && name != "next" { // not broken, so that they can be copied
			text = a.Fit(nameWidth+1, text)
		}
		fmt.Fprintf(a.Out, " %s\n", text)
	}
	line("store", "%s", cli.Printable(s.Store))
	line("memories", "%d, %s%s", s.Memories, cli.Size(s.Bytes), s.expired())
	if s.Limits != nil {
		line("limits", "%s", s.Limits.text(&s))
	}
	if s.Unknown {
		line("settings", "unknown: until config.json is valid, no history is removed, nothing is evicted or deleted "+
			"by age, and a missing file does not count as a deletion")
	}
	if s.ReadOnly != "" {
		line("read-only", "%s", cli.Printable(s.ReadOnly))
	}
	line("assemblies", "%d", s.Assemblies)
	if n := s.Notes; n != nil {
		line("notes", "%d, %s", n.Count, cli.Size(n.Bytes))
		if n.Left != nil {
			line("not notes", "%s, without history", n.Left.text())
		}
	}
	if s.Scopes > 0 {
		line("working", "%s: memctl working list",
			cli.Count(int(s.Scopes), "scope has working memory", "scopes have working memory"))
	}
	line("vectors", "%s", s.Vectors)
	if s.Embedder != nil {
		line("embedder", "%s", s.Embedder)
	}
	line("index", "%s", cli.Size(s.IndexBytes))
	line("log", "%s to read at the next open, %s of it not yet in files", cli.Size(s.LogBytes), cli.Size(s.Unflushed))
	if s.Slowed != "" {
		line("slowed", "writers wait: %s", s.Slowed)
	}
	history := cli.Size(s.History)
	if s.Since != nil {
		history += " besides the log, since " + s.Since.Local().Format("2006-01-02 15:04:05")
	}
	line("history", "%s", history)
	if s.Redacted > 0 {
		line("redacted", "%s not overwritten yet: a process that has the store open overwrites the redacted data "+
			"within about a minute, and so does the next backup", cli.Count(s.Redacted, "version is", "versions are"))
	}
	switch c := s.Copy; {
	case c == nil:
	case c.Problem != "":
		line("copy", "cannot continue: %s", cli.Printable(c.Problem))
	case c.Error != "":
		line("copy", "lacks %s of log; the last attempt to send failed: %s", cli.Size(c.Behind), cli.Printable(c.Error))
	case c.Place != "" && !c.Sending:
		line("copy", "lacks %s of log, last sent %s; no process sends: start memctl remote follow", cli.Size(c.Behind),
			ago(a, c.At))
	default:
		line("copy", "lacks %s of log, last sent %s", cli.Size(c.Behind), ago(a, c.At))
	}
	processes := "no other process has the store open"
	if len(s.Processes) > 0 {
		processes = strings.Trim(fmt.Sprint(s.Processes), "[]")
	}
	if n := len(s.Unseen); n > 0 {
		processes += "; " + cli.Count(n, "more is", "more are") +
			" registered but not visible from here: killed, or in another container"
		if len(s.away) > 0 {
			processes += fmt.Sprintf(" (of another PID namespace, with the ids %v there)", s.away)
		}
	}
	line("processes", "%s", processes)
	for _, f := range s.Adopted {
		line("adopted", "%s as notes/%s", cli.Printable(f.Link), cli.Printable(f.Folder))
	}
	if s.Watcher == nil {
		line("edits", "no process watches the files: an edit is found when its file is read, or by memctl verify")
		if len(s.Adopted) > 0 {
			line("",
				"new files of adopted folders have no history until a process watches them: memctl service install")
		}
	} else {
		where := ""
		if slices.Contains(s.away, *s.Watcher) && !slices.Contains(s.Processes, *s.Watcher) {
			where = " of another PID namespace"
		}
		how := "watches the files"
		if s.Polls != "" {
			how = "checks all files each minute"
		}
		line("edits", "process %d%s %s and adopts edits", *s.Watcher, where, how)
		if s.Polls != "" {
			line("", "the system does not notify of changes: %s", s.Polls)
		}
	}
	if s.SetAside > 0 {
		line("set aside", "%s in quarantine/: memctl quarantine list", cli.Count(s.SetAside, "file", "files"))
	}
	line("last flush", "%s", ago(a, s.LastFlush))
	if s.LastBackup == nil {
		line("last backup", "none in backups/; backups in other places are not searched")
	} else {
		line("last backup", "%s", ago(a, s.LastBackup))
	}
	if len(s.Problems) == 0 {
		line("problems", "none known; memctl verify reads everything")
	}
	for _, p := range s.Problems {
		line("problem", "%s", cli.Printable(p))
	}
	line("next", "%s", s.Next)
}

// ago returns a time as text, with the duration since that time.
func ago(a *cli.App, t *time.Time) string {
	if t == nil {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04:05") + ", " + span.Age(a.Clock().Sub(*t)) + " ago"
}

// modified returns the modification time of a file, nil if it does not exist.
func modified(files vfs.FS, path string) *time.Time {
	info, err := files.Stat(path)
	if err != nil {
		return nil
	}
	t := info.Mtime.UTC()
	return &t
}
