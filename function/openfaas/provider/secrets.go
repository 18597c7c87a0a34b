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

// secretStore keeps each secret in a file of its own.
type secretStore struct{ dir string }

func (s secretStore) path(name string) string { return filepath.Join(s.dir, "all", name) }

func (s secretStore) has(name string) bool {
	if !validName.MatchString(name) {
		return false
	}
	_, err := os.Stat(s.path(name))
	return err == nil
}

// of reads the secrets of a function that asked for these.
func (s secretStore) of(names []string) (map[string][]byte, error) {
	values := map[string][]byte{}
	for _, name := range names {
		value, err := os.ReadFile(s.path(name))
		if err != nil {
			return nil, err
		}
		values[name] = value
	}
	return values, nil
}

// place writes secrets to a folder, each to a file of its name.
func place(secrets map[string][]byte, dir string, mode os.FileMode) error {
	for name, value := range secrets {
		if err := os.WriteFile(filepath.Join(dir, name), value, mode); err != nil {
			return err
		}
	}
	return nil
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
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), replaceFile(path, value)); err != nil {
		fail(w, err)
		return
	}
	w.WriteHeader(http.StatusCreated)
}
