package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve"
	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/internal/vfs"
)

// demoPuts is the number of acknowledged puts after which the writer of the demonstration is killed.
const demoPuts = 1000

func demoCommand(a *cli.App) *cobra.Command {
	var writer bool
	c := &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Demonstrate crash safety: put, read, kill -9, verify",
		Long: `Create a store in DIR (by default in a new temporary folder), put memories into it, print the
file of one, start a second process that writes, kill it with SIGKILL, and check that every
acknowledged memory is still there.`,
		Example: "  memctl demo",
		Args:    cobra.MaximumNArgs(1),
		RunE: a.Do(func(cmd *cobra.Command, args []string) error {
			if writer {
				return demoWrite(cmd.Context(), a, args[0])
			}
			dir := ""
			if len(args) == 1 {
				dir = args[0]
				if cli.IsStore(dir) {
					return cli.Usagef(cmd.CommandPath(), "%s is already a store: give the path of a new folder", dir)
				}
				// At its end the demonstration prints the command that removes the folder.
				_, within := a.Outside(dir, "a store") // reported later
				if names, err := os.ReadDir(dir); within == nil && err == nil && len(names) > 0 {
					return cli.Usagef(cmd.CommandPath(), "%s is not empty: give the path of a new folder", dir)
				}
			}
			return runDemo(cmd.Context(), a, dir)
		}),
	}
	c.Flags().BoolVar(&writer, "writer", false, "internal: run as the writer process that the demo kills")
	_ = c.Flags().MarkHidden("writer") // cannot fail: the flag exists
	return c
}

func runDemo(ctx context.Context, a *cli.App, dir string) error {
	remove := dir
	if dir == "" {
		temp, err := vfs.MkdirTemp("", "varve-demo-")
		if err != nil {
			return fmt.Errorf("creating a temporary folder: %w", err)
		}
		dir, remove = filepath.Join(temp, "storage"), temp
	}
	a.Say("1. Three memories go into a new store, %s", dir)
	if err := demoPut(ctx, a, dir); err != nil {
		return err
	}
	a.Say("\n2. Another process puts memories, one commit each. After %d acknowledged puts it is killed (kill -9).",
		demoPuts)
	acknowledged, err := demoKill(ctx, a, dir)
	if err != nil {
		return err
	}
	a.Say("   killed; %d puts had been acknowledged", len(acknowledged))
	a.Say("\n3. The store is opened again, and everything is read.")
	return a.WithIn(ctx, dir, cli.Write, nil, func(st *varve.Store) error {
		lost := 0
		for _, id := range acknowledged {
			if _, err := st.Get(ctx, id); err != nil {
				lost++
			}
		}
		if err := st.Flush(ctx); err != nil {
			return err
		}
		findings := 0
		var sum varve.VerifySummary
		for f, err := range st.Admin().Verify(ctx, varve.VerifyOptions{Summary: &sum}) {
			if err != nil {
				return err
			}
			if f.Severity != varve.SeverityInfo {
				findings++
				a.Say("   %s: %s", f.Path, f.Kind)
			}
		}
		if d := a.Document; d != nil {
			d.Member("store", dir)
			d.Member("acknowledged", len(acknowledged))
			d.Member("missing", lost)
			d.Member("memories", sum.Memories)
			d.Member("files", sum.Files)
			d.Member("findings", findings)
		}
		a.Say("   acknowledged and missing: %d", lost)
		a.Say("   verify: memories %d, files %d, findings %d", sum.Memories, sum.Files, findings)
		if lost > 0 || findings > 0 {
			return errors.New("an acknowledged memory is missing, or verify has findings: this is a bug, please " +
				"report it")
		}
		a.Say("\nThe files are yours: ls %s\nNext: memctl --store %s status\nTo remove them: rm -r %s",
			cli.ShellPath(filepath.Join(dir, "memories")), cli.ShellPath(dir), cli.ShellPath(remove))
		return nil
	})
}

func demoPut(ctx context.Context, a *cli.App, dir string) error {
	return a.WithIn(ctx, dir, cli.Create, nil, func(st *varve.Store) error {
		for id, text := range map[string]string{
			"likes": "prefers short answers", "project": "builds a bridge of timber, span 50 m", "name": "is called Ada",
		} {
			if _, err := st.Put(ctx,
				varve.Memory{ID: id, Content: text, Metadata: map[string]any{"session_id": "demo"}}); err != nil {
				return err
			}
		}
		if err := st.Flush(ctx); err != nil {
			return err
		}
		path := filepath.Join(dir, "memories", "likes.json")
		b, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		a.Say("   $ cat %s", path)
		for line := range strings.Lines(string(b)) {
			a.Say("   %s", strings.TrimRight(line, "\n"))
		}
		return nil
	})
}

// demoKill starts another process that writes memories into the store in dir. It kills this process after demoPuts
// acknowledged puts, and returns the ids of these memories.
func demoKill(ctx context.Context, a *cli.App, dir string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the executable file of memctl: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "demo", "--writer", "--", dir)
	cmd.Stderr = a.ErrOut.Stream // also a memctl, which prints messages in the same way
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting the writer: %w", err)
	}
	var ids []string
	for in := bufio.NewScanner(out); in.Scan(); {
		ids = append(ids, in.Text())
		if len(ids) == demoPuts {
			if err := cmd.Process.Kill(); err != nil {
				return nil, fmt.Errorf("killing the writer: %w", err)
			}
		}
	}
	err = cmd.Wait()
	if len(ids) < demoPuts {
		return ids, fmt.Errorf("the writer process ended before memctl demo killed it: %w",
			cmp.Or(err, errors.New("the exit status is 0")))
	}
	// A last line that was cut off was not acknowledged.
	return ids[:demoPuts], nil
}

// demoWrite puts memories until it is killed, and prints the id of each.
func demoWrite(ctx context.Context, a *cli.App, dir string) error {
	return a.WithIn(ctx, dir, cli.Write, nil, func(st *varve.Store) error {
		for i := 0; ; i++ {
			m, err := st.Put(ctx, varve.Memory{ID: fmt.Sprintf("written-%06d", i), Content: "acknowledged"})
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, m.ID)
			if err := a.Out.Flush(); err != nil {
				return err
			}
		}
	})
}
