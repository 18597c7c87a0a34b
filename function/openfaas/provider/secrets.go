package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/openfaas/faas-provider/types"
)

// secretStore keeps each secret in a file of its own, and for each function a folder with those it asked for.
type secretStore struct{ dir string }

func (s secretStore) path(name string) string { return filepath.Join(s.dir, "all", name) }

func (s secretStore) has(name string) bool {
	if !validName.MatchString(name) {
		return false
	}
	_, err := os.Stat(s.path(name))
	return err == nil
}

// folder makes the folder of a function's secrets anew.
func (s secretStore) folder(function string, names []string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(s.dir, "of", function))
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return "", err
	}
	for _, name := range names {
		value, err := os.ReadFile(s.path(name))
		if err != nil {
			return "", err
		}
		// Readable for a container's own user; the folders above are for this user only.
		if err := os.WriteFile(filepath.Join(dir, name), value, 0o444); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func (s secretStore) names() ([]types.Secret, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, "all"))
	if errors.Is(err, os.ErrNotExist) {
		return []types.Secret{}, nil
	}
	list := make([]types.Secret, 0, len(entries))
	for _, entry := range entries {
		list = append(list, types.Secret{Name: entry.Name()})
	}
	return list, err
}

func (a api) secret(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		list, err := a.secrets.names()
		for n := range list {
			list[n].Namespace = a.registry.namespace
		}
		reply(w, list, err)
		return
	}
	var secret types.Secret
	if err := json.NewDecoder(r.Body).Decode(&secret); err != nil {
		http.Error(w, "a secret as JSON was expected: "+err.Error(), http.StatusBadRequest)
		return
	}
	if !validName.MatchString(secret.Name) {
		http.Error(w, fmt.Sprintf("secret name %q: small letters, digits and dashes are allowed", secret.Name), http.StatusBadRequest)
		return
	}
	exists := a.secrets.has(secret.Name)
	if r.Method == http.MethodPost && exists {
		http.Error(w, "secret "+secret.Name+" exists; change it by: faas-cli secret update", http.StatusConflict)
		return
	}
	if r.Method != http.MethodPost && !exists {
		http.Error(w, "secret "+secret.Name+" does not exist", http.StatusNotFound)
		return
	}
	path := a.secrets.path(secret.Name)
	if r.Method == http.MethodDelete {
		fail(w, os.Remove(path))
		return
	}
	value := secret.RawValue
	if len(value) == 0 {
		value = []byte(secret.Value)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, value, 0o600)); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusCreated)
}
