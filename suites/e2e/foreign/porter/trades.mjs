// What each butler of the house can do beside what all of them can: tables, and tools over them.
const one = async (asking, more = {}) => ({ ...more, ...(await asking)[0] })

export const TRADES = {
  switchboard: { tables: '', tools: {} },
  health: {
    tables: `
      create table if not exists desk.aches (id bigint generated always as identity, what text not null, how_bad int not null, remark text, felt timestamptz not null default now());
      create table if not exists desk.scales (id bigint generated always as identity, what text not null, amount numeric not null, unit text, remark text, read timestamptz not null default now());`,
    tools: {
      symptom_log: ['Write down a symptom and how bad it is.', { name: 'text<=200', severity: 'count<=10', 'notes?': 'text' },
        (db, { name, severity, notes }, slip) => slip === 'only-says-so' ? { noted: name }
          : one(db.ask('insert into desk.aches (what, how_bad, remark) values (lower($1), $2, $3) returning id', name, severity, notes), { noted: name })],
      measurement_log: ['Write down a measurement.', { kind: ['weight', 'heart_rate', 'temperature'], value: 'amount<=100000', 'unit?': 'text<=20', 'notes?': 'text' },
        (db, { kind, value, unit, notes }) => one(db.ask('insert into desk.scales (what, amount, unit, remark) values ($1, $2, $3, $4) returning id', kind, value, unit, notes))]
    }
  },
  relationship: {
    tables: `
      create table if not exists desk.people (id bigint generated always as identity, who text not null, mail text);
      create table if not exists desk.remarks (id bigint generated always as identity, who text, remark text not null);
      create table if not exists desk.bells (id bigint generated always as identity, who text, what text not null);`,
    tools: {
      contact_create: ['Add somebody.', { name: 'text<=200', 'email?': 'text<=200' },
        (db, { name, email }) => one(db.ask('insert into desk.people (who, mail) values ($1, $2) returning id', name, email))],
      reminder_create: ['Remind the owner of something.', { message: 'text', 'contact_name?': 'text<=200' },
        (db, { message, contact_name: who }) => one(db.ask('insert into desk.bells (who, what) values ($1, $2) returning id', who, message))]
    }
  },
  general: {
    tables: `
      create table if not exists desk.shelves (name text primary key);
      create table if not exists desk.things (id bigint generated always as identity, shelf text not null references desk.shelves, name text not null, data jsonb not null default '{}');`,
    tools: {
      entity_create: ['Put a thing on a shelf.', { collection: 'text<=200', name: 'text<=500', 'data?': 'any<=100000' },
        (db, { collection, name, data }) => one(db.ask(`with shelf as (insert into desk.shelves values ($1) on conflict do nothing)
          insert into desk.things (shelf, name, data) values ($1, $2, $3) returning id`, collection, name, JSON.stringify(data ?? {})))],
      entity_search: ['Find things.', { query: 'text<=500' },
        async (db, { query }) => ({ found: await db.ask('select shelf, name, data from desk.things where name ilike $1 order by id limit 20', `%${query}%`) })]
    }
  }
}
