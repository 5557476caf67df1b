export function ClientsView() {
  return (
    <div class="view page">
      <h1 tabIndex={-1}>Leaving v1</h1>
    </div>
  );
}
