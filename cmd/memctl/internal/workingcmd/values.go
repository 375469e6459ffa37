package workingcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/intake"
	"github.com/varve-db/varve/cmd/memctl/internal/span"
	"github.com/varve-db/varve/working"
)

func (w *scopeApp) missingKey(key string) error {
	return cli.WithFix(fmt.Errorf("key %q in scope %s: %w", key, cli.PrintableID(w.scope), varve.ErrNotFound),
		"memctl working keys --scope "+cli.ShellQuote(w.scope)+" shows the keys of the scope")
}

func (w *scopeApp) getCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "get KEY...",
		Short: "Show values",
		Long: `Show values, one per line: a text as it is, everything else as JSON. A missing key does not keep
the others from being shown; a key whose value is null is not missing.`,
		Example: "  memctl working get draft --scope session:s1",
		Args:    cli.AtLeastOne("a key"),
		RunE: w.onScope(cli.Read, func(ctx context.Context, m *working.Memory, args []string) error {
			w.Document.Begin("values")
			return w.Each(ctx, args, func(key string) error {
				e, found, err := m.Entry(ctx, key)
				switch {
				case err != nil:
					return err
				case !found:
					return w.missingKey(key)
				case w.Document != nil:
					w.Document.Item(shownEntry(&e))
				default:
					return w.show(e.Value)
				}
				return nil
			})
		}),
	}
}

// workingValue is a value of working memory with its metadata, in the JSON output.
type workingValue struct {
	Key     string    `json:"key"`
	Value   any       `json:"value"`
	Version uint64    `json:"version"`
	Updated time.Time `json:"updated_at"`
	TTL     *float64  `json:"ttl_seconds"` // null: the value does not expire
}

func shownEntry(e *working.Entry) workingValue {
	v := workingValue{Key: e.Key, Value: e.Value, Version: e.Version, Updated: e.Updated}
	if e.TTL >= 0 {
		s := e.TTL.Seconds()
		v.TTL = &s
	}
	return v
}

func (w *scopeApp) setCommand() *cobra.Command {
	var (
		text, absent bool
		ttl          time.Duration
	)
	c := &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a value",
		Long: `Set a value: JSON, or a text if the argument is not JSON. "-" reads the value from stdin. A key
does not begin with "_". A scope that does not exist is created.`,
		Example: `  memctl working set attempts 3 --scope session:s1
  memctl working set draft "to be done" --ttl 1h --scope session:s1
  memctl working set zip 01234 --text --scope session:s1`,
		Args: cli.Exactly(2, "a key and a value"),
		RunE: w.Do(func(cmd *cobra.Command, args []string) error {
			v, err := w.value(cmd.Context(), args[1], text)
			if err != nil {
				return err
			}
			var opts []working.SetOption
			if cmd.Flags().Changed("ttl") {
				opts = append(opts, working.Expires(ttl))
			}
			return w.withScope(cmd, cli.Write, func(ctx context.Context, m *working.Memory) error {
				if absent {
					done, err := m.SetIfAbsent(ctx, args[0], v, opts...)
					if err == nil && !done {
						var e working.Entry
						if e, _, err = m.Entry(ctx, args[0]); err == nil {
							err = cli.WithFix(fmt.Errorf("key %q exists: %w", args[0],
								&working.ConflictError{Name: args[0], Found: e.Version}), "omit --if-absent to replace the value")
						}
					}
					if err != nil {
						return err
					}
				} else if err := m.Set(ctx, args[0], v, opts...); err != nil {
					return err
				}
				e, found, err := m.Entry(ctx, args[0])
				switch {
				case err != nil || !found && ttl != 0:
					return err
				case w.Document != nil:
					w.Document.Begin("values")
					if found {
						w.Document.Item(shownEntry(&e))
					}
				default:
					w.Say("set %s", cli.Printable(args[0]))
				}
				return nil
			})
		}),
	}
	c.Flags().BoolVar(&text, "text", false, "store the value as a text, even if it is JSON")
	c.Flags().BoolVar(&absent, "if-absent", false,
		"set the value only if the key has no value; otherwise exit with status 5")
	c.Flags().Var(span.Flag(&ttl), "ttl",
		"`duration` after which the value expires (0: at once); by default it does not expire")
	return c
}

// value returns the value that an argument denotes: a JSON value if the argument is valid JSON and text is
// false, otherwise the argument itself as a text.
func (w *scopeApp) value(ctx context.Context, arg string, text bool) (any, error) {
	if arg == "-" {
		b, err := intake.Slurp(ctx, w.In, "-", working.MaxValue)
		if err != nil {
			return nil, err
		}
		arg = string(b)
	}
	if text {
		return arg, nil
	}
	d := json.NewDecoder(bytes.NewReader([]byte(arg)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return arg, nil
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return arg, nil
	}
	return v, nil
}

func (w *scopeApp) rmCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:     "rm KEY...",
		Aliases: []string{"delete"},
		Short:   "Remove values",
		Long: `Remove values. A missing key does not keep the others from being removed. --all removes all
values; task state, scratchpad and checkpoints are kept.`,
		Example: "  memctl working rm draft --scope session:s1\n  memctl working rm --all --scope session:s1",
		Args: func(cmd *cobra.Command, args []string) error {
			if all != (len(args) == 0) {
				return cli.Usagef(cmd.CommandPath(), "name keys, or give --all")
			}
			return nil
		},
		RunE: w.onScope(cli.Write, func(ctx context.Context, m *working.Memory, args []string) error {
			if all {
				n, err := m.Clear(ctx)
				return w.removed(n, "value", "values", err)
			}
			w.Document.Begin("deleted")
			return w.Each(ctx, args, func(key string) error {
				was, err := m.Delete(ctx, key)
				switch {
				case err != nil:
					return err
				case !was:
					return w.missingKey(key)
				default:
					w.Document.Item(key)
					w.Say("removed %s", cli.Printable(key))
				}
				return nil
			})
		}),
	}
	c.Flags().BoolVar(&all, "all", false, "remove all values of the scope")
	return c
}

// removed prints how many values or entries were removed, unless err is not nil, and returns err. one and many are
// the singular and the plural of their noun.
func (w *scopeApp) removed(n int, one, many string, err error) error {
	if err == nil && w.Document != nil {
		w.Document.Member("removed", n)
	} else if err == nil {
		w.Say("removed %s", cli.Count(n, one, many))
	}
	return err
}

func (w *scopeApp) keysCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "keys [PATTERN]",
		Short: "List keys",
		Long: `List the keys that match a pattern, sorted: * matches any run of characters, ? one character,
[a-z] one of a set, and \ makes the next character literal.`,
		Example: "  memctl working keys --scope session:s1\n  memctl working keys 'draft.*' --scope session:s1",
		Args:    cobra.MaximumNArgs(1),
		RunE: w.Do(func(cmd *cobra.Command, args []string) error {
			pattern := "*"
			if len(args) > 0 {
				pattern = args[0]
			}
			return w.withScope(cmd, cli.Read, func(ctx context.Context, m *working.Memory) error {
				keys, err := m.Keys(ctx, pattern)
				if err != nil {
					return err
				}
				if w.Document != nil {
					w.Document.Member("keys", keys)
					return nil
				}
				for _, key := range keys {
					fmt.Fprintln(w.Out, cli.Printable(key))
				}
				return nil
			})
		}),
	}
}
