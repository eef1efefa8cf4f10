-- The tables of a store, format 3.
CREATE TABLE IF NOT EXISTS plans (id INTEGER PRIMARY KEY, toml TEXT NOT NULL, folder TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS current (
    position INTEGER PRIMARY KEY, dataset TEXT NOT NULL, method TEXT NOT NULL, split INTEGER NOT NULL,
    key TEXT NOT NULL, tune_key TEXT, identity TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS runs (
    key TEXT PRIMARY KEY, status TEXT NOT NULL, error TEXT NOT NULL, trace TEXT NOT NULL, again INTEGER NOT NULL,
    vals TEXT NOT NULL, params TEXT NOT NULL, tune_seconds REAL, train_seconds REAL, test_seconds REAL,
    processor_seconds REAL, gap REAL, evaluations REAL, seed INTEGER, version TEXT, machine TEXT, finished REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS folds (
    tune_key TEXT NOT NULL, point TEXT NOT NULL, fold INTEGER NOT NULL, vals TEXT NOT NULL, fit_seconds REAL, gap REAL,
    evaluations REAL, processor_seconds REAL, PRIMARY KEY (tune_key, point, fold)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS datasets (
    dataset TEXT PRIMARY KEY, n_samples INTEGER, n_features INTEGER, n_labels INTEGER, cardinality REAL, density REAL
);
CREATE TABLE IF NOT EXISTS claims (key TEXT PRIMARY KEY, owner TEXT NOT NULL);
