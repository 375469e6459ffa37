package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/varve-db/varve/cmd/memctl/internal/cli"
	"github.com/varve-db/varve/cmd/memctl/internal/manual"
	"github.com/varve-db/varve/internal/vfs"
)

func manualCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use:   "manual DIR",
		Short: "Write the manual pages",
		Long: `Write the manual pages into a folder, memctl.1 and one page for each command, replacing those that are
there. Packages of memctl install them; after go install, write them to a folder that man searches.
The pages have the date of the commit, or the one that SOURCE_DATE_EPOCH gives in Unix seconds.`,
		Example: "  memctl manual ~/.local/share/man/man1",
		Args:    cli.Exactly(1, "a folder"),
		RunE:    a.Do(func(cmd *cobra.Command, args []string) error { return writeManual(a, cmd, args[0]) }),
	}
}

func writeManual(a *cli.App, cmd *cobra.Command, dir string) error {
	b := manual.Book{Version: cli.ThisBuild().Version}
	for _, v := range cli.Variables() {
		b.Environ = append(b.Environ, manual.Item{Name: v.Name, About: v.Text})
	}
	for _, c := range cli.ExitCodes() {
		b.Codes = append(b.Codes, manual.Item{Name: strconv.Itoa(c.Code), About: c.Text})
	}
	var err error
	if b.Date, err = manualDate(a, cmd); err != nil {
		return err
	}
	if err := a.NotInStore(filepath.Join(dir, "memctl.1")); err != nil {
		return err
	}
	if err := vfs.MkdirAll(vfs.OS(), dir, 0o755); err != nil {
		return err
	}
	pages := b.Pages(cmd.Root())
	for _, p := range pages {
		if err := cmd.Context().Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, p.Name)
		err := a.ReplaceFile(path, 0o644, func(w io.Writer) error {
			_, err := io.WriteString(w, p.Text)
			return err
		})
		if err != nil {
			return fmt.Errorf("writing the manual: %w", err)
		}
	}
	if a.Document != nil {
		a.Document.Member("folder", dir)
		a.Document.Member("pages", len(pages))
		return nil
	}
	a.Say("wrote %s to %s", cli.Count(len(pages), "manual page", "manual pages"), cli.Printable(dir))
	return nil
}

const lastSecond = 253402300799 // the last second of the year 9999, in Unix time

// manualDate returns the date that the manual pages show.
func manualDate(a *cli.App, cmd *cobra.Command) (string, error) {
	if s := a.Getenv("SOURCE_DATE_EPOCH"); s != "" {
		seconds, err := strconv.ParseInt(s, 10, 64)
		if err != nil || seconds < 0 || seconds > lastSecond {
			return "", cli.Usagef(cmd.CommandPath(), "SOURCE_DATE_EPOCH is %q: must be a number of seconds from 0 to %d", s,
				lastSecond)
		}
		return time.Unix(seconds, 0).UTC().Format(time.DateOnly), nil
	}
	at, err := time.Parse(time.RFC3339, cli.ThisBuild().Date)
	if err != nil {
		return "", nil // the build has no date
	}
	return at.UTC().Format(time.DateOnly), nil
}
