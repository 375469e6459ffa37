package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/internal/sniff"
	"github.com/varve-db/varve/internal/timearg"
	"github.com/varve-db/varve/memstore"
)

// putFlags are the flags of put.
type putFlags struct {
	file, input            string
	id                     string
	session, category, key string
	meta, tags             []string
	embedding              string
	ttl, expires, happened string
	until, at              time.Time // times of expiry and of the event
	appendTo               string
	ifAbsent, forcePurged  bool
	ifVersion              uint64
}

func putCommand(a *cli.App) *cobra.Command {
	var f putFlags
	c := &cobra.Command{
		Use:        "put TEXT | - | --file FILE | --json-input FILE|-",
		SuggestFor: []string{"add", "remember", "save", "store"},
		Short:      "Store a memory",
		Long: `Store a memory and print its id; on a terminal, unless --quiet is given, with the command that
prints it, or that lists the versions of one that was replaced. The text is the argument, or the
bytes of a file or of stdin (-). A memory with the same id is replaced; to change one, use memctl
edit.

--append adds the text to an existing memory, named by its id or an ending of it, on a new line.
Reading and writing are one transaction: of several processes that append at once, none loses its
text.

If VARVE_EMBED_URL and VARVE_EMBED_MODEL name an embedding service, a memory without an
embedding gets one; if the service fails, the memory is stored without an embedding
(memctl reindex --missing computes it later). VARVE_EMBED_KEY is the key of the service.

--json-input reads whole memories: one object, an array of objects, or one object per line. All
are validated before any is written, and they are written in one commit if it can hold them.`,
		Example: `  memctl put "prefers short answers" --session s1 --category preferences
  memctl put --file notes.txt --id notes --meta source=desk --meta 'importance:=0.8'
  memctl put "met Ann in Como" --tag travel --tag people --timestamp yesterday
  memctl put "the build is red" --session s1 --ttl 24h
  memctl put "and on Fridays" --append notes
  memctl put "a walk" --embedding '[0.1,0.2,0.3]'
  jq -c '.[]' memories.json | memctl put --json-input -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef(cmd.CommandPath(), "the text is one argument, not %d: put it in quotes", len(args))
			}
			return nil
		},
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			options := f.options(cmd)
			if f.input != "" {
				return a.WithEmbedder(cmd.Context(),
					func(st *varve.Store) error { return putInput(cmd.Context(), a, st, f.input, options) })
			}
			if err := f.check(cmd, args); err != nil {
				return err
			}
			if err := f.times(cmd, a.Clock()); err != nil {
				return err
			}
			return a.WithEmbedder(cmd.Context(), func(st *varve.Store) error {
				if cmd.Flags().Changed("append") {
					return appendText(cmd.Context(), a, st, args, &f, options)
				}
				return putOne(cmd.Context(), a, st, args, &f, options)
			})
		}),
	}
	fl := c.Flags()
	fl.StringVarP(&f.file, "file", "f", "", "read the text from a `file`; - is stdin")
	fl.StringVar(&f.input, "json-input", "", "read whole memories as JSON from a `file`; - is stdin")
	fl.StringVar(&f.id, "id", "", "`id` of the memory; generated if omitted")
	fl.StringVar(&f.appendTo, "append", "", "add the text to the memory with this `id`, or ending of an id")
	fl.StringVar(&f.session, "session", "", "`session` of the memory (metadata.session_id)")
	fl.StringVar(&f.category, "category", "", "`category` of the memory (metadata.category)")
	fl.StringVar(&f.key, "key", "", "`key` of the memory (metadata.key)")
	fl.StringArrayVarP(&f.meta, "meta", "m", nil, "metadata: `name=text`, or name:=JSON; may be repeated")
	fl.StringArrayVar(&f.tags, "tag", nil, "a `tag` of the memory (metadata.tags); may be repeated")
	fl.StringVar(&f.happened, "timestamp", "",
		"`time` of the event, now if omitted: 2026-01-31, yesterday 17:00, 3 days ago")
	fl.StringVar(&f.embedding, "embedding", "", "embedding: a `JSON` list of numbers, or a file with one")
	fl.StringVar(&f.ttl, "ttl", "", "`duration` after which the memory expires: 90m, 24h, 7d, 2w")
	fl.StringVar(&f.expires, "expires", "",
		"`time` to come at which the memory expires: 2026-01-31, 2026-01-31T15:04:05Z, tomorrow, friday (the next one), "+
			"next month, in 3 days")
	fl.BoolVar(&f.ifAbsent, "if-absent", false, "only if no memory has this id")
	fl.Uint64Var(&f.ifVersion, "if-version", 0, "only if this `version` is the newest one")
	fl.BoolVar(&f.forcePurged, "force-purged", false,
		"store the text although it was purged; the store then forgets that it was purged")
	c.MarkFlagsMutuallyExclusive("if-absent", "if-version")
	c.MarkFlagsMutuallyExclusive("ttl", "expires")
	for _, other := range []string{"file", "id", "session", "category", "key", "meta", "tag", "timestamp", "embedding",
		"ttl", "expires", "if-version", "append"} {
		c.MarkFlagsMutuallyExclusive("json-input", other)
	}
	for _, other := range []string{"id", "session", "category", "key", "meta", "tag", "timestamp", "embedding", "ttl",
		"expires", "if-absent"} {
		c.MarkFlagsMutuallyExclusive("append", other)
	}
	return c
}

func (f *putFlags) options(cmd *cobra.Command) (list []varve.PutOption) {
	switch {
	case f.ifAbsent:
		list = append(list, varve.IfAbsent())
	case cmd.Flags().Changed("if-version"):
		list = append(list, varve.IfVersion(f.ifVersion))
	}
	if f.forcePurged {
		list = append(list, varve.ForcePurged())
	}
	return list
}

// check returns an error unless exactly one source gives the text of the memory. It also returns an error if the value
// of --append or --id is empty.
func (f *putFlags) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 && f.file == "":
		return cli.Usagef(cmd.CommandPath(), "the text is missing: give it as an argument, on stdin (-), or with --file")
	case len(args) == 1 && f.file != "":
		return cli.Usagef(cmd.CommandPath(), "the text is given twice: as an argument and by --file")
	case cmd.Flags().Changed("append") && f.appendTo == "":
		return cli.Usagef(cmd.CommandPath(), "--append is empty: name the memory that gets the text")
	case cmd.Flags().Changed("id") && f.id == "":
		return fmt.Errorf("--id: %w", intake.NoID("id", memstore.DefaultLimits().IDBytes))
	}
	return nil
}

// times parses the flags that set the time of the event and the time at which the memory expires.
func (f *putFlags) times(cmd *cobra.Command, now time.Time) error {
	if cmd.Flags().Changed("timestamp") {
		t, err := timearg.Parse(f.happened, now.Local())
		if err != nil {
			return cli.Usagef(cmd.CommandPath(), "--timestamp %w", err)
		}
		f.at = t.From
	}
	switch {
	case cmd.Flags().Changed("ttl"):
		d, err := span.Parse(f.ttl)
		if err != nil {
			return cli.Usagef(cmd.CommandPath(), "--ttl %w", err)
		}
		f.until = now.Add(d)
	case cmd.Flags().Changed("expires"):
		t, err := timearg.Coming(f.expires, now.Local())
		if err != nil {
			return cli.Usagef(cmd.CommandPath(), "--expires %w; --ttl takes a duration from now", err)
		}
		f.until = t
	}
	return nil
}

// putOne stores the one memory that the arguments and flags of put describe.
func putOne(ctx context.Context, a *cli.App, st *varve.Store, args []string, f *putFlags,
	options []varve.PutOption) error {
	limit := cli.LimitsOf(st.Admin().Config()).MemoryBytes
	m := varve.Memory{ID: f.id, Timestamp: f.at, ExpiresAt: f.until}
	var err error
	if m.Content, err = content(ctx, a, args, f.file, limit); err != nil {
		return err
	}
	if m.Metadata, err = f.metadata(); err != nil {
		return err
	}
	if f.embedding != "" {
		if m.Embedding, err = intake.Numbers(ctx, a.In, "--embedding", f.embedding, limit); err != nil {
			return err
		}
	}
	if m.Content == "" && len(m.Embedding) == 0 && len(f.meta) == 0 && len(f.tags) == 0 {
		return fmt.Errorf("the text is empty: %w", &varve.FieldError{Field: "content", Value: `""`,
			Err: errors.New("a memory without text needs --embedding or --meta")})
	}
	return putTold(ctx, a, st, m, options)
}

// putTold stores a memory and prints a confirmation.
func putTold(ctx context.Context, a *cli.App, st *varve.Store, m varve.Memory, options []varve.PutOption) error {
	what := isNew
	if a.Out.Screen && m.ID != "" { // a user is told whether the memory existed just before
		if _, err := st.Admin().GetRaw(ctx, m.ID); err == nil {
			what = "replaced"
		}
	}
	m, err := st.Put(ctx, m, options...)
	if err == nil {
		tellPut(ctx, a, st, &m, what)
	}
	return err
}

// isNew is the word with which tellPut describes a memory that did not exist before.
const isNew = "stored"

// tellPut confirms that a memory was stored. In the JSON output it adds the id and the version. On a terminal it
// prints verb, such as "stored", and a command that shows the memory or its history. Otherwise it prints only the
// id.
func tellPut(ctx context.Context, a *cli.App, st *varve.Store, m *varve.Memory, verb string) {
	switch {
	case a.Document != nil:
		a.Document.Begin("memories")
		a.Document.Item(stored{m.ID, m.Version})
	case a.Out.Screen && !a.Quiet:
		short := a.Short(ctx, st, m.ID)
		name, arg := short, cli.ShellQuote(m.ID)
		if short != m.ID && strings.HasSuffix(m.ID, short) { // a short id may also be the whole id in printable form
			name, arg = "…"+short, short
		}
		if strings.HasPrefix(arg, "-") {
			arg = "-- " + arg
		}
		next := "show it: memctl get"
		if verb != isNew {
			next = "earlier versions: memctl history"
		}
		fmt.Fprintf(a.Out, "%s %s; %s %s\n", verb, name, next, arg)
	default:
		fmt.Fprintln(a.Out, cli.PrintableID(m.ID))
	}
}

// stored is a stored memory in the JSON output of put.
type stored struct {
	ID      string `json:"id"`
	Version uint64 `json:"version,omitempty"`
}

// content returns the text of a memory: the argument, or the content of a file or of stdin.
func content(ctx context.Context, a *cli.App, args []string, file string, limit int) (string, error) {
	if len(args) == 1 {
		if args[0] != "-" {
			return args[0], nil
		}
		file = "-"
	}
	b, err := intake.Slurp(ctx, a.In, file, limit)
	if what := sniff.Foreign(b[:min(len(b), sniff.Longest)]); err == nil && what != nil && (b[0] != 0 || !utf8.Valid(b)) {
		err = &varve.FieldError{Field: "input " + file, Err: fmt.Errorf("%w text: %w", varve.ErrInvalid, what)}
	}
	return string(b), err
}

func (f *putFlags) metadata() (map[string]any, error) {
	m := map[string]any{}
	for _, s := range f.meta {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" || name == ":" {
			return nil, cli.Usagef("memctl put", "--meta %q: must be name=text or name:=JSON", s)
		}
		if j, ok := strings.CutSuffix(name, ":"); ok {
			d := json.NewDecoder(strings.NewReader(value))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err != nil {
				return nil, intake.Invalid("--meta "+j, err)
			}
			if d.More() {
				return nil, intake.Invalid("--meta "+j, errors.New("more than one JSON value"))
			}
			m[j] = v
			continue
		}
		m[name] = value
	}
	for name, value := range map[string]string{"session_id": f.session, "category": f.category, "key": f.key} {
		if value != "" {
			m[name] = value
		}
	}
	if slices.Contains(f.tags, "") {
		return nil, cli.Usagef("memctl put", "--tag is empty: give a tag, or omit it")
	}
	if len(f.tags) > 0 {
		if _, twice := m["tags"]; twice {
			return nil, cli.Usagef("memctl put", "the tags are given twice, by --tag and by --meta: use one of them")
		}
		m["tags"] = f.tags
	}
	if len(m) == 0 {
		return nil, nil
	}
	return m, nil
}
