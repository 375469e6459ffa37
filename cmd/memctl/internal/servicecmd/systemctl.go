package servicecmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// scope returns the flag of systemctl that selects the units of the user; "" selects those of the system.
func scope(s *settings) string { return one(s.system, "", "--user ") }

// systemctl runs the program systemctl once for each list of arguments in calls.
func systemctl(ctx context.Context, s *settings, calls ...[]string) error {
	for _, args := range calls {
		args = append(strings.Fields(scope(s)), args...)
		cmd := exec.CommandContext(ctx, "systemctl", args...)
		var errOut bytes.Buffer
		cmd.Stderr = &errOut
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(errOut.Bytes()))
		}
	}
	return nil
}

// unreachable reports whether err means that there is no systemd to notify: systemctl is missing, or cannot reach a
// manager.
func unreachable(err error) bool {
	text := err.Error()
	return errors.Is(err, exec.ErrNotFound) || strings.Contains(text, "connect to bus") ||
		strings.Contains(text, "not been booted with systemd") || strings.Contains(text, "$DBUS_SESSION_BUS_ADDRESS")
}
