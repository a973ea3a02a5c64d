create table orders (id serial primary key, item text not null, count integer not null check (count > 0));
