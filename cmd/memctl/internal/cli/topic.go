package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// exitCodesTopic returns the help topic that lists the exit codes; every help text refers to it.
func exitCodesTopic() *cobra.Command {
	c := &cobra.Command{Use: "exit-codes", Short: "The exit statuses of memctl", Long: exitCodesText()}
	c.SetHelpTemplate("{{.Long}}\n")
	return c
}

// exitStatus is the last line of every help text.
const exitStatus = "Exit statuses: memctl help exit-codes\n"

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("The exit status of memctl says what kind of failure ended a command. Scripts may rely on it.\n\n")
	for _, c := range ExitCodes() {
		fmt.Fprintf(&b, "%5d  %s\n", c.Code, c.Text)
	}
	b.WriteString("\nIf a command has several failures, the gravest determines the exit status, in this order:")
	for i, code := range Gravity() {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", code)
	}
	b.WriteString(".\n\nWith --json the document ends with \"error\", the gravest failure. If there are several, " +
		"\"errors\" has all of\nthem. Each has a \"kind\", which is finer than the exit status:\n\n")
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "%5d  %s\n", k.Code, k.Kind)
	}
	return strings.TrimRight(b.String(), "\n")
}

// helpText returns the help of a command as one text.
func helpText(c *cobra.Command) string {
	if c.IsAdditionalHelpTopicCommand() {
		return c.Long
	}
	return strings.TrimSpace(c.Long + "\n\n" + c.UsageString() + "\n" + exitStatus)
}
